"""
The cup or the spoon? Regions with guarantees
=============================================

A significance map answers with 50,176 verdicts on pixels. Here the same samples answer about the parts of the picture,
and about a region that somebody draws after a look.
"""

# %%
# Which parts get more than the rest?
# -----------------------------------
#
# The gradient map of a photograph of a cup of coffee, for 30 noisy copies.

import numpy as np
from PIL import Image
from skimage import data

import metfa

loaded = metfa.models.load("efficientnet-lite0")
explainer = metfa.explainers.Gradient(loaded.module)
images = loaded.preprocess(Image.fromarray(data.coffee()))[None]
noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
sample = metfa.explain(explainer, images, noise=noise, n_samples=30, rng=0)

# %%
# Superpixels are parts of like colour. In each sample, the mean score of a superpixel is compared with the mean score
# of everything else in that sample. So no threshold has to be chosen. Holm's correction makes each statement safe: no
# part is called "more than the rest" falsely, with probability 95 %.

parts = metfa.regions.superpixels(sample, 50)
pooled = sample.over(parts, against="rest")
metfa.plot.regions(pooled, pixels=sample, correction="holm", title="coffee: which parts get more than the rest?")

# %%
# Two regions that somebody knows
# -------------------------------
#
# Is it the cup or the spoon? Two boxes, drawn without a look at the map, and one question: does the cup get more than
# the spoon?

boxes = metfa.regions.boxes(sample, [(40, 0, 170, 180), (135, 95, 205, 205)], names=["the cup", "the spoon"])
cup, spoon = boxes.as_masks()
cup = cup & ~spoon
against_spoon = sample.over(metfa.Regions(cup[None], ["the cup"], against=spoon))
interval = against_spoon.confidence_interval()
mark = {1: "gets more than", 0: "is not decided against", -1: "gets less than"}
print(f"the cup {mark[int(against_spoon.significance_map()[0, 0])]} the spoon: the median difference of the means lies")
print(f"in [{interval.low[0, 0]:.4f}, {interval.high[0, 0]:.4f}] with confidence {interval.confidence_level:.1%}")

# %%
# A region that is drawn after a look
# -----------------------------------
#
# A test of a box that the map itself suggested says nothing: the data chose it. The guarantee holds for all regions at
# once, so it holds for this one too. Its threshold must not depend on the samples. Here it is the mean of each map, a
# number that means the same for every picture, and half of it.

bright = np.zeros(sample.feature_shape, bool)
bright[70:130, 60:150] = True
print(sample.scaled("mean").guarantee(bright, threshold=1.0))
print(sample.scaled("mean").guarantee(bright, threshold=0.5))

# sphinx_gallery_thumbnail_number = 1
