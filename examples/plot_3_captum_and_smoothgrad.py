"""
A Captum method, and two kinds of error bars
============================================

The mean of the samples of Captum's ``Saliency`` under noise is SmoothGrad. The mean also has an error bar, by the
central limit theorem. How does it compare with the exact interval of the median?
"""

# %%
# A Captum method needs no adapter
# --------------------------------
#
# `metfa.explainers.heatmap` reduces the colour channels and scales each map to [0, 1]. metfa finds the model through
# the bound method, so it predicts the target as usual.

import matplotlib.pyplot as plt
import numpy as np
from captum.attr import Saliency
from PIL import Image
from skimage import data

import metfa
from metfa import stats
from metfa.explainers import heatmap

loaded = metfa.models.load("efficientnet-lite0")
images = loaded.preprocess(Image.fromarray(data.coffee()))[None]
explainer = heatmap(Saliency(loaded.module).attribute)
sample = metfa.explain(explainer, images, noise=metfa.noise.Uniform(0.1, bounds=(0, 1)), n_samples=50, rng=0)

# %%
# The law of a score is skewed
# ----------------------------
#
# Gradient scores cannot be negative, and they have a long tail to the right. The left figure shows the 50 scores of one
# pixel: among the strong pixels, it is the one where mean and median differ most. The right figure shows the skewness
# of the scores of each pixel; it is 0 for a normal law.

scores = sample.values[:, 0].reshape(50, -1)
median, mean = sample.median()[0].ravel(), sample.mean()[0].ravel()
strong = median > np.quantile(median, 0.99)
pixel = np.flatnonzero(strong)[np.argmax((mean - median)[strong])]
skewness = ((scores - mean) ** 3).mean(axis=0) / scores.std(axis=0) ** 3

exact, asymptotic = sample.confidence_interval(0.95), sample.mean_interval(0.95)
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.hist(scores[:, pixel], bins=25, color="0.8")
for height, colour, name, interval, centre in (
    (5.2, "tab:blue", f"median, exact {exact.confidence_level:.1%}", exact, median),
    (4.4, "tab:red", "mean, asymptotic 95%", asymptotic, mean),
):
    left.hlines(height, interval.low[0].flat[pixel], interval.high[0].flat[pixel], colour, linewidth=3, label=name)
    left.plot(centre[pixel], height, "o", color=colour)
left.set(xlabel="attribution score of one pixel", ylabel="samples")
left.legend(frameon=False)
right.hist(skewness, bins=100, range=(-2, 5), color="0.6")
right.axvline(0, color="black", linestyle=":")
right.set(xlabel="skewness of a pixel's 50 scores", ylabel="pixels")
plt.show()

# %%
# Does the interval keep its level?
# ---------------------------------
#
# Nobody knows the true median or mean for a photograph. So we take a law where both are known: the log-normal law,
# which is skewed like the scores above, but more. At each N, how many of 20,000 intervals contain the true value?
#
# The exact interval covers the median in at least 95 % at every N, and its coverage is the level that it states (the
# small circles). The coverage of the asymptotic interval is lower and rises slowly.

rng = np.random.default_rng(0)
sizes = [6, 8, 10, 15, 20, 30, 50, 70, 100]
spread = 1.0
true_median, true_mean = 1.0, np.exp(spread**2 / 2)
held_exact, held_asymptotic, stated = [], [], []
for n in sizes:
    draws = rng.lognormal(sigma=spread, size=(n, 20_000))
    interval = stats.median_interval(draws, 0.95)
    held_exact.append(np.mean((interval.low <= true_median) & (true_median <= interval.high)))
    stated.append(interval.confidence_level)
    interval = stats.mean_interval(draws, 0.95)
    held_asymptotic.append(np.mean((interval.low <= true_mean) & (true_mean <= interval.high)))

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(sizes, held_exact, "-", color="tab:blue", label="median, exact interval")
ax.plot(sizes, stated, "o", color="tab:blue", fillstyle="none", label="the coverage that it states")
ax.plot(sizes, held_asymptotic, "s-", color="tab:red", markersize=4, label="mean, asymptotic interval (SmoothGrad)")
ax.axhline(0.95, color="black", linestyle=":", label="95%")
ax.set(xscale="log", xticks=sizes, xlabel="N", ylabel="share of intervals that hold the truth", ylim=(0.7, 1))
ax.set_xticks(sizes, labels=map(str, sizes))
ax.minorticks_off()
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# The two answer different questions: the mean and the median of a skewed law are not the same number. The advantage of
# the exact interval is its level. It needs no assumption about the law, and it holds at N = 6 as well as at N = 100.

# sphinx_gallery_thumbnail_number = 2
