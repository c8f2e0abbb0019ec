"""
Two runs of LIME disagree
=========================

This is the introduction of the MeTFA paper in Python. The same explainer runs twice on the same picture and gives two
answers. Which parts of them are reliable?
"""

# %%
# The same question, asked twice
# ------------------------------
#
# LIME cuts the picture into segments, hides random sets of them and fits a linear model. Its answer is the five
# segments that speak most for the class. Below, only the seed changes. (The batch normalisation of the network is
# folded into its convolutions. This is faster and gives the same scores up to rounding. 100 copies instead of the usual
# 1000 keep this page quick and make LIME less stable.)

import matplotlib.pyplot as plt
from PIL import Image
from skimage import data

import metfa
from metfa.explainers import LIME

metfa.allocator.keep_freed_memory()  # then large batches need no new memory each time
loaded = metfa.models.load("efficientnet-lite0")
images = loaded.preprocess(Image.fromarray(data.chelsea()))[None]
called = metfa.Called(loaded.module, fast="exact")  # how the network is asked: a copy with fewer layers
target = int(called.scores(images).argmax())

runs = [LIME(called, n_perturbations=100, rng=seed)(images, target)[0][0] for seed in (1, 2)]

picture = images[0].permute(1, 2, 0).numpy()
fig, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained")
axes[0].imshow(picture)
axes[0].set_title(f"why “{loaded.class_names[target]}”?")
for ax, run, seed in zip(axes[1:], runs, (1, 2), strict=True):
    ax.imshow(picture * (0.25 + 0.75 * run[..., None].numpy()))
    ax.set_title(f"LIME, seed {seed}")
for ax in axes:
    ax.set(xticks=[], yticks=[])
both, either = (runs[0] * runs[1]).sum(), ((runs[0] + runs[1]) > 0).sum()
plt.show()
print(f"Of the pixels that one of the runs shows, both show {float(both / either):.0%}.")

# %%
# What many runs agree on
# -----------------------
#
# `metfa.explain` runs LIME 12 times, each time on a noisy copy and with other random numbers. The scores are 0 and 1
# here, so "the median lies above ½" means that LIME shows the pixel in more than half of the runs. ``threshold=0.5``
# asks exactly this.

noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
sample = metfa.explain(LIME(called, n_perturbations=100), images, target, noise=noise, n_samples=12, rng=0)
figure = sample.plot(threshold=0.5, title="12 runs of LIME")

# %%
# Blue pixels are those that LIME reliably leaves out when the picture is a little noisy. Many pixels that single runs
# on the clean picture show are blue, such as the cheek (the segments also move with the noise). Amber pixels would be
# those that LIME reliably shows. For grey pixels, another run may say anything. The title is red, and the colours are
# faint, because the network is not sure about this picture. It names another cat in most of the noisy copies, and LIME
# still explains this one.

print(sample.summary(threshold=0.5)[0])

# sphinx_gallery_thumbnail_number = 1
