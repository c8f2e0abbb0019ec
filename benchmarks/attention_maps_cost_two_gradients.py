"""Rollout, gradient rollout and LeGrad against a forward and backward pass of the bare model; Score-CAM of tokens.

ViT-B/16 with random weights, two images of 224 x 224, float32. The bare model uses torch's fused attention; the
explainers compute the weights. Score-CAM is that of grad-cam's definition, on a small ViT (192 entries of the
embedding, 128 x 128 pixels), against grad-cam's own with the same layer and batches of 16: both make one forward pass
for each entry.
"""

import argparse
import contextlib
import io

import pytorch_grad_cam
import torch
from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget
from torchvision.models import VisionTransformer

from benchmarks.measuring import compare
from metfa import Called
from metfa.explainers import AttentionRollout, GradientRollout, LeGrad, ScoreCAM


def seeded(image_size: int, heads: int, width: int) -> VisionTransformer:
    torch.manual_seed(0)
    model = VisionTransformer(image_size, 16, 12, heads, width, 4 * width, num_classes=10)
    torch.nn.init.normal_(model.heads.head.weight)  # torchvision makes it 0
    return model.eval().requires_grad_(False)


def maps_by_attention(rounds: int) -> None:
    model, images = seeded(224, 12, 768), torch.rand(2, 3, 224, 224)

    def bare() -> None:
        leaf = images.clone().requires_grad_()
        torch.autograd.grad(model(leaf)[:, 1].sum(), leaf)

    for kind in (AttentionRollout, GradientRollout, LeGrad):
        explainer = kind(model)
        names = kind.__name__, "forward and backward"
        compare(names, lambda explainer=explainer: explainer(images, 1), bare, rounds=rounds, target=1.6)


def score_cam(rounds: int) -> None:
    model, image = seeded(128, 3, 192), torch.rand(1, 3, 128, 128)
    theirs = pytorch_grad_cam.ScoreCAM(
        model,
        [model.encoder.layers[-1].ln_1],
        reshape_transform=lambda tokens: tokens[:, 1:].unflatten(1, (8, 8)).movedim(-1, 1),
    )
    ours = ScoreCAM(Called(model, batch_size=16), variant="grad-cam")

    def of_grad_cam() -> None:
        with contextlib.redirect_stderr(io.StringIO()):
            theirs(image, [ClassifierOutputTarget(1)])

    compare(("Score-CAM", "grad-cam's"), lambda: ours(image, 1), of_grad_cam, rounds=rounds, target=0.6)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    maps_by_attention(options.rounds)
    score_cam(options.rounds)
