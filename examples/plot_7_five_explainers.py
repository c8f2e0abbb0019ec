"""
Five explainers on one photograph
=================================

This is the comparison figure of the MeTFA paper. It shows one run, the smoothed map, the significance map and both
bounds for Gradient, RISE, LIME, I-GOS and Score-CAM.
"""

# %%
# Five questions to one network
# -----------------------------
#
# All explainers take the same picture and return maps in [0, 1], so they share one colour scale. To keep this page
# quick, their budgets are smaller than usual. RISE has 150 masks instead of 1000, and LIME 100 copies. I-GOS has 4
# iterations of 5 points instead of 15 of 20. Score-CAM takes the 192 channels of the last block but one instead of the
# 1,280 of the head. Each explains N = 8 copies of the picture.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from PIL import Image
from skimage import data

import metfa
from metfa.explainers import IGOS, LIME, RISE, Gradient, ScoreCAM

metfa.allocator.keep_freed_memory()  # then large batches need no new memory each time
loaded = metfa.models.load("efficientnet-lite0")
images = loaded.preprocess(Image.fromarray(data.coffee()))[None]
called = metfa.Called(loaded.module, fast="exact")  # how all of them ask the network: a copy with fewer layers
explainers = {
    "Gradient": Gradient(called),
    "RISE": RISE(called, n_masks=150),
    "LIME": LIME(called, n_perturbations=100),
    "I-GOS": IGOS(called, n_iterations=4, n_steps=5),
    "Score-CAM": ScoreCAM(called, layer="blocks.14"),
}
noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
samples = {
    name: metfa.explain(explainer, images, noise=noise, n_samples=8, rng=0) for name, explainer in explainers.items()
}

# %%
# The figure
# ----------

colours = metfa.plot.PALETTES["colourblind"]
significance = ListedColormap([colours.unimportant, colours.undecided, colours.important])
columns = ("one run", "smoothed", "significance", "upper bound", "lower bound")

fig, axes = plt.subplots(5, 5, figsize=(10, 10.5), layout="constrained")
for row, (name, sample) in zip(axes, samples.items(), strict=True):
    interval = sample.confidence_interval()
    maps = (sample.vanilla, sample.smoothed(), sample.significance_map(), interval.high, interval.low)
    for ax, scores, column in zip(row, maps, columns, strict=True):
        marks = column == "significance"
        ax.imshow(
            scores[0],
            cmap=significance if marks else "inferno",
            vmin=-1 if marks else 0,
            vmax=1,
            interpolation="nearest",
        )
        ax.set(xticks=[], yticks=[])
        if ax in axes[0]:
            ax.set_title(column)
    row[0].set_ylabel(name, fontsize="large")
fig.suptitle("Amber: significantly important. Dark blue: significantly unimportant. Grey: undecided.")
plt.show()

# %%
# How sure is each?
# -----------------
#
# The width of the intervals is the uncertainty of a map; because of it, a share of the pixels is undecided. A stable
# explainer is not necessarily right: a map that is the same for every picture is perfectly stable.

print(f"{'':<10} {'mean width':>10} {'important':>10} {'undecided':>10}")
for name, sample in samples.items():
    interval, marks = sample.confidence_interval(), sample.significance_map()
    width = float(np.mean(interval.high - interval.low))
    print(f"{name:<10} {width:>10.3f} {(marks == 1).mean():>10.1%} {(marks == 0).mean():>10.1%}")

# sphinx_gallery_thumbnail_number = 1
