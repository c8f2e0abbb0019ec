"""
Error bars on a photograph
==========================

These are the samples of the command ``metfa demo``, pixel by pixel. Why does a network call this picture an espresso,
and which parts of the answer remain under noise? (The command asks about regions first: see
:doc:`/gallery/plot_12_regions`.)
"""

# %%
# One explanation is one draw
# ---------------------------
#
# A model of `metfa.models.load` takes pixels in [0, 1] and normalises them itself. So a noise of 0.1 means a tenth of
# the range from black to white. `metfa.explainers.Gradient` gives the absolute gradient of the class score, one number
# in [0, 1] a pixel. `metfa.explain` explains 50 noisy copies of the picture, and the clean one.

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
# No target was given, so every copy explains the class that was predicted for the clean picture.

print(loaded.class_names[sample.target[0]])
print(sample.summary()[0])

# %%
# Six maps
# --------
#
# *Vanilla* is the single explanation without noise. *Smoothed* is the mean of the samples inside the interval of each
# pixel. The *lower* and *upper bound* are the two ends of the interval. The last map is the verdict. The median of an
# amber pixel lies above the threshold, and the median of a dark blue pixel lies below it. For a grey pixel, 50 samples
# cannot decide.

figure = sample.plot(title="Why “espresso”?")

# %%
# Bars, literally
# ---------------
#
# A map is 50,176 estimates, each with its own interval. Here are the 60 pixels with the highest score in the *vanilla*
# map; a reader of a single heat map would point at them. The crosses are that single explanation, and the bars are the
# exact intervals of the medians. Pixels that are chosen for high scores have lower scores in another look. But here
# they fall so far that most of them are *undecided*. Their high scores belonged to this one picture and not to pictures
# close to it.

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
ax.axhline(sample.threshold()[0], color="black", linestyle=":", label="threshold (natural break of the medians)")
ax.set(
    xlabel="pixels, by vanilla score",
    ylabel="attribution score",
    ylim=(0, None),
    title=f"The 60 highest pixels of one explanation, and their {interval.confidence_level:.1%} intervals",
)
ax.legend(frameon=False, ncols=2)
plt.show()

# sphinx_gallery_thumbnail_number = 1
