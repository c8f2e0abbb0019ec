"""
Which slices? Error bars for a volume
=====================================

A bright ball lies in an artificial scan whose slices are further apart than its rows. A network looks for such balls.
Which voxels of the scan are significantly important for its answer?
"""

# %%
# A scan with a ball
# ------------------
#
# Sixteen slices, 3 mm apart, of 48 rows and 40 columns, 1 mm apart: an ellipsoid with a bright ball in it.

import numpy as np
import torch

import metfa

SPACING = (3.0, 1.0, 1.0)  # mm
SHAPE = (16, 48, 40)
places = np.stack(np.meshgrid(*[np.arange(side) for side in SHAPE], indexing="ij")) * np.reshape(SPACING, (3, 1, 1, 1))
middle = (np.array(SHAPE) - 1) / 2 * SPACING


def ellipsoid(centre, *radii):
    return (((places - np.reshape(centre, (3, 1, 1, 1))) / np.reshape(radii, (3, 1, 1, 1))) ** 2).sum(axis=0) < 1


rng = np.random.default_rng(0)
scan = 0.05 + 0.35 * ellipsoid(middle, 21, 21, 15) + 0.4 * ellipsoid((30, 18, 25), 5, 5, 5)
scan = np.clip(scan + rng.normal(0, 0.03, SHAPE), 0, 1)

# %%
# The network has nothing to learn: its one filter is such a ball, less what lies around it.

nearby = np.stack(np.meshgrid(*[np.arange(-side, side + 1) for side in (3, 9, 9)], indexing="ij"))
distance = np.sqrt(((nearby * np.reshape(SPACING, (3, 1, 1, 1))) ** 2).sum(axis=0))
ball, shell = distance < 5, (distance >= 5) & (distance < 9)
detector = torch.nn.Conv3d(1, 1, ball.shape, padding=(3, 9, 9))
with torch.no_grad():
    detector.weight[0, 0] = torch.tensor(ball / ball.sum() - shell / shell.sum())
    detector.bias[:] = -0.2


class Detector(torch.nn.Module):
    """Scores of "no ball" and "a ball": how strongly the filter answers anywhere."""

    def __init__(self):
        super().__init__()
        self.detector = detector

    def forward(self, volumes):
        answers = torch.relu(self.detector(volumes)).flatten(1)
        return torch.stack([torch.zeros(len(volumes)), torch.logsumexp(30 * answers, dim=1)], dim=1)


network = Detector().eval()

# %%
# Which voxels are important?
# ---------------------------
#
# The gradient for 30 noisy copies. `metfa.plot.Volume` says how far the voxels lie apart, so that nothing is squeezed.
# Three planes cross in the voxel with the largest score.

inputs = torch.tensor(scan, dtype=torch.float32)[None, None]
noise = metfa.noise.Gaussian(0.05, bounds=(0, 1))
sample = metfa.explain(metfa.explainers.Gradient(network), inputs, 1, noise=noise, n_samples=30, rng=0)
kind = metfa.plot.Volume(spacing=SPACING, unit="mm")
sample.plot(kind=kind, correction="bh", title="a ball in a scan")

# %%
# Which blocks get more than the rest?
# ------------------------------------
#
# Blocks of the volume are asked as a whole, and Holm's correction makes each of the statements safe.

blocks = metfa.regions.blocks(sample, (8, 8, 8))
pooled = sample.over(blocks, against="rest")
pooled.plot(kind=kind, correction="holm", title="512 blocks")

# sphinx_gallery_thumbnail_number = 1
