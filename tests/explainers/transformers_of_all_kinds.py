"""Tiny transformers for images, of timm, torchvision and Hugging Face, with random weights."""

from collections.abc import Callable
from dataclasses import dataclass

import timm
import torch
from torchvision.models.swin_transformer import SwinTransformer
from torchvision.models.vision_transformer import VisionTransformer

from metfa.models import Selected

SIZE = (24, 32)
PIXELS = torch.rand(3, 3, *SIZE, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
TARGETS = [0, 2, 1]
SIZES = {"image_size": SIZE, "patch_size": 8, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2}


def timm_model(name, **settings):
    sizes = {"embed_dim": 12, "depth": 2, "num_heads": 2, "img_size": SIZE, "patch_size": 8, "num_classes": 4}
    return timm.create_model(name, **{**sizes, **settings})


def timm_swin(**settings):
    sizes = {
        "embed_dim": 6,
        "depths": (2, 2),
        "num_heads": (2, 2),
        "window_size": 2,
        "img_size": SIZE,
        "num_classes": 4,
    }
    return timm.create_model("swin_tiny_patch4_window7_224", **{**sizes, **settings})


def torchvision_vit():
    class OfAnySize(VisionTransformer):
        """Torchvision's checks that the image is square, which its layers do not need."""

    sizes = {"image_size": 32, "patch_size": 8, "num_layers": 2, "num_heads": 2, "hidden_dim": 12, "mlp_dim": 24}
    return OfAnySize(**sizes, num_classes=4)


def torchvision_swin():
    sizes = {"patch_size": [4, 4], "embed_dim": 6, "depths": [2, 2], "num_heads": [2, 2], "window_size": [2, 2]}
    return SwinTransformer(**sizes, num_classes=4)


def of_hugging_face(name, **settings):
    import transformers

    config = getattr(transformers, f"{name}Config")(**{**SIZES, "intermediate_size": 24, "num_labels": 4, **settings})
    return Selected(getattr(transformers, f"{name}ForImageClassification")(config), "logits")


def swin_of_hugging_face():
    import transformers

    config = transformers.SwinConfig(
        image_size=SIZE, patch_size=4, embed_dim=6, depths=[2, 2], num_heads=[2, 2], window_size=2, num_labels=4
    )
    return Selected(transformers.SwinForImageClassification(config), "logits")


@dataclass(frozen=True)
class Family:
    """How one is made, its grid of patches and the number of tokens before them."""

    make: Callable
    prefixes: int = 1
    grid: tuple[int, int] = (3, 4)
    size: tuple[int, int] = SIZE


FAMILIES = {
    "timm's ViT": Family(lambda: timm_model("vit_tiny_patch16_224")),
    "timm's DeiT": Family(lambda: timm_model("deit_tiny_distilled_patch16_224"), 2),
    "timm's ViT with registers": Family(lambda: timm_model("vit_small_patch14_reg4_dinov2"), 5),
    "timm's ViT, average": Family(
        lambda: timm_model("vit_tiny_patch16_224", global_pool="avg", class_token=False, fc_norm=False), 0
    ),
    "timm's ViT, average behind a class token": Family(
        lambda: timm_model("vit_tiny_patch16_224", global_pool="avg")
    ),
    "torchvision's ViT": Family(torchvision_vit, 1, (4, 4), (32, 32)),
    "Hugging Face's ViT": Family(lambda: of_hugging_face("ViT")),
    "Hugging Face's DeiT": Family(lambda: of_hugging_face("DeiT"), 2),
    "Hugging Face's DINOv2 with registers": Family(
        lambda: of_hugging_face("Dinov2WithRegisters", image_size=32, num_register_tokens=3, mlp_ratio=2), 4
    ),
}  # fmt: skip
WINDOWED = {
    "timm's Swin": timm_swin,
    "torchvision's Swin": torchvision_swin,
    "Hugging Face's Swin": swin_of_hugging_face,
}


def network(make, dtype=torch.float64):
    """With the same weights each time, so large that attention and scores differ, in evaluation mode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = make()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.copy_(
                    torch.randn_like(parameter) * (0.3 if parameter.ndim > 1 else 0.1) + (parameter.ndim == 1)
                )
    return made.to(dtype).eval()


def pixels_for(family, dtype=torch.float64):
    height, width = family.size
    return torch.nn.functional.interpolate(PIXELS, (height, width), mode="bilinear").to(dtype)
