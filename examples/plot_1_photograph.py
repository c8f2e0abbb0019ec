"""
Error bars on a photograph
==========================

The command ``metfa demo`` in Python: why does a network call this an espresso, and which parts of the answer survive
noise?
"""

# %%
# One explanation is one draw
# ---------------------------
#
# A model of `metfa.models.load` takes pixels in [0, 1] and normalises them itself, so a noise of 0.1 means a tenth of
# the range from black to white. `metfa.explainers.Gradient` gives the absolute gradient of the class score, one
# number in [0, 1] a pixel. `metfa.explain` explains 50 noisy copies of the picture, and the clean one.

from PIL import Image
from skimage import data

import metfa

loaded = metfa.models.load("efficientnet-lite0")
images = loaded.preprocess(Image.fromarray(data.coffee()))[None]
explainer = metfa.explainers.Gradient(loaded.module)
noise = metfa.noise.Uniform(0.1, bounds=(0, 1))

sample = metfa.explain(explainer, images, noise=noise, n_samples=50, rng=0)
print(sample)

# %%
# The target was not given, so the class predicted on the clean picture was explained, and held fixed for every copy.

print(loaded.class_names[sample.target[0]])
print(sample.summary()[0])

# %%
# Six maps
# --------
#
# *Vanilla* is the single explanation that one would have looked at. *Smoothed* averages the samples inside each
# pixel's interval; the *lower* and *upper bound* are the interval's two ends. The last map is the verdict: the median
# of a yellow pixel lies above the threshold, that of a green one below it, and of a purple one the 50 samples cannot
# tell.

figure = sample.plot(title="Why “espresso”?")

# %%
# Bars, literally
# ---------------
#
# A map is 50,176 estimates, each with an interval of its own. Here are the 60 pixels with the highest score in the
# *vanilla* map, the ones that a reader of a single heat map would point at. The crosses are that single explanation;
# the bars are the exact intervals of the medians. Pixels picked for being high fall when they are looked at again,
# but here they fall to where nearly all of them are *unimportant*: their height belonged to this one picture and not
# to its surroundings.

import matplotlib.pyplot as plt
import numpy as np

interval = sample.confidence_interval(0.95)
order = np.argsort(sample.vanilla[0].ravel())[::-1][:60]
low, high, smoothed, vanilla, marks = (
    maps[0].ravel()[order]
    for maps in (interval.low, interval.high, sample.smoothed(), sample.vanilla, sample.significance_map())
)
colours = metfa.plot.PALETTES["colourblind"]

fig, ax = plt.subplots(figsize=(9, 4), layout="constrained")
position = np.arange(len(order))
for mark, colour, name in (
    (1, colours.important, "important"),
    (0, colours.undecided, "undecided"),
    (-1, colours.unimportant, "unimportant"),
):
    chosen = marks == mark
    ax.vlines(position[chosen], low[chosen], high[chosen], colour, linewidth=4, label=f"{name}: {chosen.sum()} pixels")
ax.plot(position, smoothed, "_", color="black", label="smoothed score")
ax.plot(position, vanilla, "x", color="crimson", markersize=5, label="vanilla score")
ax.axhline(sample.threshold()[0], color="black", linestyle=":", label="threshold (natural breaks)")
ax.set(
    xlabel="pixels, by vanilla score",
    ylabel="attribution score",
    ylim=(0, None),
    title=f"The 60 highest pixels of one explanation, and their {interval.confidence_level:.1%} intervals",
)
ax.legend(frameon=False, ncols=2)
plt.show()

# sphinx_gallery_thumbnail_number = 1
