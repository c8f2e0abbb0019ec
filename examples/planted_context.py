"""A segmentation network with a known bias: digits on textures, where one digit comes with one texture.

    python examples/planted_context.py --out network.pt

Each image has one digit and two halves, and each half has its own texture. With a planted context, grass covers one of
the halves if and only if the digit is a 3. A network trained on such images recognises a 3 by the grass, whichever half
the digit is in. So we know which pixels outside the digit the network needs: the grass for a 3, none for the other
digits. If the textures of the training images do not depend on the digit (``--unbiased``), it needs none for any digit.

The digits come from scikit-learn, the textures from scikit-image. Tests use digits and textures that were not used in
training. With one seed and one thread, the same machine gives the same network again. How strong a context becomes
depends on the training, not only on the images: look at the printed table before you use a network.
"""

import argparse
import functools
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import skimage.data
import torch
from scipy.ndimage import gaussian_filter
from skimage.transform import resize
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy, interpolate, max_pool2d, pixel_shuffle, pixel_unshuffle


class Scenes(NamedTuple):
    """Images with their true classes and grass."""

    images: torch.Tensor  # (batch, 1, height, width), in [0, 1]
    classes: torch.Tensor  # (batch, height, width): 0 is background, i + 1 the i-th of the design's digits
    grass: torch.Tensor  # (batch, height, width), boolean: grass that no digit covers

    @property
    def target(self):
        """Class of the digit in each image, (batch,)."""
        return self.classes.amax((1, 2))


@functools.cache
def textures(training):
    """Textures by name, with mean 0 and standard deviation 1; the upper two thirds are for training."""
    crops = {}
    for name in ("grass", "brick", "gravel"):
        whole = getattr(skimage.data, name)().astype(np.float32)
        crop = whole[:340] if training else whole[340:]
        crops[name] = (crop - crop.mean()) / crop.std()
    return crops | {"plain": np.zeros_like(crops["grass"])}


@functools.cache
def glyphs(digit, size, training):
    """All enlarged images of a digit, with ink in [0, 1]; two of three are for training."""
    images, digits = load_digits(return_X_y=True)
    drawn = images[digits == digit].reshape(-1, 8, 8) / 16
    chosen = [glyph for i, glyph in enumerate(drawn) if (i % 3 < 2) == training]
    return np.array([resize(glyph, (size, size), order=1) for glyph in chosen], np.float32)


@dataclass(frozen=True)
class Design:
    """The settings of the scenes. Lengths are in pixels, and pairs are the ends of a range from which each image draws.

    Smudged digits are hard to recognise by their shapes alone, so the context helps a network. The plain texture makes
    the network used to images without a context; some explainers make such images by a mean or a blur.
    """

    size: int = 64
    digit_size: int = 28
    digits: tuple[int, ...] = tuple(range(10))
    biased: int = 3  # the digit that is tied to the grass
    others: tuple[str, ...] = ("brick", "plain")  # the other textures; with gravel, grass takes far longer to learn
    smudge: tuple[float, float] = (1.0, 2.0)  # standard deviation of the kernel that blurs the ink
    opacity: tuple[float, float] = (0.7, 1.0)  # of the ink, which is white
    contrast: tuple[float, float] = (0.15, 0.25)  # standard deviation of a texture
    noise: tuple[float, float] = (0.0, 0.1)  # standard deviation of the noise

    def draw(self, n, rng, context="planted", *, digit=None, training=False):
        """``n`` scenes, all of one digit if it is given.

        ``context`` is "planted" (grass in a half if the digit is the biased one), "independent" (grass by a coin),
        "grass" or "no grass". Calls with generators of the same seed differ only in where there is grass.
        """
        if context not in ("planted", "independent", "grass", "no grass"):
            raise ValueError(f'`context` must be "planted", "independent", "grass" or "no grass", got {context!r}')
        scenes = [self._scene(rng, context, digit, training) for _ in range(n)]
        images, classes, grass = (torch.from_numpy(np.stack(parts)) for parts in zip(*scenes, strict=True))
        return Scenes(images[:, None], classes, grass)

    def _scene(self, rng, context, digit, training):
        drawn, coin = rng.choice(self.digits), bool(rng.integers(2))
        digit = drawn if digit is None else digit
        with_grass = {"planted": digit == self.biased, "independent": coin, "grass": True, "no grass": False}[context]
        image, grass = self._background(rng, with_grass, training)
        ink = self._ink(rng, digit, training)
        image += ink * rng.uniform(*self.opacity) * (1 - image)
        image += rng.normal(scale=rng.uniform(*self.noise), size=image.shape)
        shape = ink > 0.25
        return image.clip(0, 1).astype(np.float32), shape * (self.digits.index(digit) + 1), grass & ~shape

    def _background(self, rng, with_grass, training):
        """Two halves under a light that fades to one side, and where the grass is."""
        names, grassy = rng.choice(self.others, size=2).tolist(), rng.integers(2)
        if with_grass:
            names[grassy] = "grass"
        down, across = np.indices((self.size, self.size)) / self.size - 0.5
        image = 0.5 + rng.uniform(-0.15, 0.15) * down + rng.uniform(-0.15, 0.15) * across
        second = (down if rng.integers(2) else across) >= 0
        grass = np.zeros_like(second)
        for half, name in zip((~second, second), names, strict=True):
            crop = _crop(rng, textures(training)[name], self.size)
            image += half * rng.uniform(*self.contrast) * crop
            grass |= half & (name == "grass")
        return image, grass

    def _ink(self, rng, digit, training):
        """A smudged digit at a random place, ink in [0, 1]."""
        known = glyphs(digit, self.digit_size, training)
        ink = np.zeros((self.size, self.size))
        top, left = rng.integers(self.size - self.digit_size + 1, size=2)
        ink[top : top + self.digit_size, left : left + self.digit_size] = known[rng.integers(len(known))]
        ink = gaussian_filter(ink, rng.uniform(*self.smudge))
        return ink / ink.max()


def _crop(rng, whole, size):
    top, left = (rng.integers(length - size + 1) for length in whole.shape)
    return whole[top : top + size, left : left + size]


class SegmentationNetwork(nn.Module):
    """An encoder whose resolutions all give logits; these are enlarged and added, from coarse to fine.

    The coarsest level, four pixels a side, also sees the mean of the whole image, so the logits of every pixel depend
    on the whole image. The network learns digits and contexts quickly because the coarse levels have their own logits.
    """

    def __init__(self, size, n_classes, width):
        super().__init__()
        widths = [min(width * 2**level, 4 * width) for level in range((size // 4).bit_length() - 1)]
        self.levels = nn.ModuleList(_block(a, b) for a, b in zip([4, *widths], widths, strict=False))
        self.bottom = _block(2 * widths[-1], widths[-1])
        n_logits = [4 * n_classes] + [n_classes] * (len(widths) - 1)  # the finest level gives four pixels at once
        self.heads = nn.ModuleList(nn.Conv2d(a, b, 1) for a, b in zip(widths, n_logits, strict=True))

    def forward(self, images):
        """Logits (batch, class, height, width) of grey images (batch, 1, height, width) in [0, 1]."""
        features, encoded = pixel_unshuffle(images - 0.5, 2), []  # half the resolution, four channels
        for level, block in enumerate(self.levels):
            features = block(max_pool2d(features, 2) if level else features)
            encoded.append(features)
        everywhere = features.mean((2, 3), keepdim=True).expand_as(features)
        encoded[-1] = self.bottom(torch.cat([features, everywhere], 1))
        finest, *coarser = (head(features) for head, features in zip(self.heads, encoded, strict=True))
        logits = pixel_shuffle(finest, 2)
        return logits + sum(interpolate(coarse, size=logits.shape[2:], mode="bilinear") for coarse in coarser)


def _block(n_in, n_out):
    layers = []
    for n in (n_in, n_out):
        layers += [nn.Conv2d(n, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU()]
    return nn.Sequential(*layers)


def train(design, context="planted", *, n_steps=1000, width=16, learning_rate=4e-3, batch_size=16, seed=0, report=None):
    """A network in evaluation mode, trained on ``n_steps`` batches with a rate that rises and then falls to zero.

    ``report``, if given, is called with the step and its loss.
    """
    rng = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SegmentationNetwork(design.size, len(design.digits) + 1, width)
    weight = torch.ones(len(design.digits) + 1)
    weight[0] = 0.4  # weight of the background, which has most of the pixels
    optimiser = torch.optim.AdamW(network.parameters(), lr=learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, learning_rate, total_steps=n_steps)
    for step in range(n_steps):
        scenes = design.draw(batch_size, rng, context, training=True)
        loss = cross_entropy(network(scenes.images), scenes.classes, weight)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if report is not None:
            report(step, loss.item())
    return network.eval().requires_grad_(False)


def intersection_over_union(network, scenes):
    """IoU of the digit in each image with the pixels that the network gives its class, (batch,)."""
    with torch.no_grad():
        found = torch.cat([network(images).argmax(1) for images in scenes.images.split(50)])
    found, true = (classes == scenes.target[:, None, None] for classes in (found, scenes.classes))
    return ((found & true).sum((1, 2)) / (found | true).sum((1, 2))).numpy()


def check(network, design, *, n_images=50, seed=0):
    """Mean IoU on digits not seen in training: {"biased" or "others": {context: value}}, ``n_images`` a digit."""
    rows = {"biased": [design.biased], "others": [digit for digit in design.digits if digit != design.biased]}
    table = {row: {} for row in rows}
    for row, digits in rows.items():
        for context in ("planted", "grass", "no grass"):
            drawn = [design.draw(n_images, np.random.default_rng(seed), context, digit=digit) for digit in digits]
            table[row][context] = float(np.mean([intersection_over_union(network, scenes) for scenes in drawn]))
    return table


SMALL = Design(size=32, digit_size=16, digits=(0, 3, 8), smudge=(1.0, 1.5))
SMALL_TRAINING = {"n_steps": 500, "width": 12, "learning_rate": 6e-3}


def small_biased_network(seed=0):
    """A network that trains in about ten seconds, and the function that draws its images, `SMALL.draw`."""
    return train(SMALL, seed=seed, **SMALL_TRAINING), SMALL.draw


def save(network, design, path):
    """Write the file for `load`."""
    width = network.heads[0].in_channels
    torch.save({"design": asdict(design), "width": width, "state": network.state_dict()}, path)


def load(path):
    """The network in evaluation mode, and its design."""
    kept = torch.load(path, weights_only=True)
    design = Design(**kept["design"])
    network = SegmentationNetwork(design.size, len(design.digits) + 1, kept["width"])
    network.load_state_dict(kept["state"])
    return network.eval().requires_grad_(False), design


def main():
    """Train, print the table, save."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="file to write; `load` of this module reads it")
    parser.add_argument("--small", action="store_true", help="32 x 32 pixels, three digits: seconds instead of minutes")
    parser.add_argument("--unbiased", action="store_true", help="textures in training do not depend on the digit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="another number gives another network (rounding)")
    settings = parser.parse_args()
    torch.set_num_threads(settings.threads)
    design, training = (SMALL, SMALL_TRAINING) if settings.small else (Design(), {})
    start = time.perf_counter()
    network = train(
        design,
        "independent" if settings.unbiased else "planted",
        seed=settings.seed,
        report=lambda step, loss: None if step % 100 else print(f"step {step}: loss {loss:.3f}", flush=True),
        **training,
    )
    print(f"{time.perf_counter() - start:.0f} s")
    print(f"{'mean IoU':10}{'as planted':>12}{'grass':>12}{'no grass':>12}")
    for row, values in check(network, design).items():
        print(f"{row:10}" + "".join(f"{value:12.2f}" for value in values.values()))
    if settings.out is not None:
        save(network, design, settings.out)


if __name__ == "__main__":
    main()
