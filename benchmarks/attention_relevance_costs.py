"""LRP of a ViT-B/16 by "cplrp" and "attnlrp", against a forward and a backward pass of the bare model.

The network of timm has random weights, 86 million. The bare passes give the gradient of a class by the pixels, with
frozen weights, as relevance needs no more; the gradient by the weights as well would cost half more.
"""

import argparse

import torch

from benchmarks.measuring import compare, synchronised
from metfa.explainers import LRP


def main(device: str, rounds: int, batch: int) -> None:
    import timm

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = timm.create_model("vit_base_patch16_224", pretrained=False).to(device).eval().requires_grad_(False)
        images = torch.rand(batch, 3, 224, 224, device=device)

    def bare() -> None:
        leaf = images.clone().requires_grad_()
        torch.autograd.grad(model(leaf)[:, 1].sum(), leaf)

    for composite in ("cplrp", "attnlrp"):
        explainer = LRP(model, composite=composite)
        compare(
            (f"{composite}, batch of {batch}", "forward and backward"),
            synchronised(lambda explainer=explainer: explainer(images, 1)),
            synchronised(bare),
            rounds=rounds,
            target=1.6,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batch", type=int, default=2)
    options = parser.parse_args()
    print(f"torch {torch.__version__}")
    main(options.device, options.rounds, options.batch)
