"""
Two runs of LIME disagree
=========================

The introduction of the MeTFA paper in Python: the same explainer, the same picture, two runs, two answers. Which parts
of them can be relied on?
"""

# %%
# The same question, asked twice
# ------------------------------
#
# LIME cuts the picture into segments, hides random sets of them and fits a linear model; the five segments that speak
# most for the class are its answer. Nothing below changes but the seed. (The copies are classified by a network whose
# batch normalisation is folded away, which is faster and the same but for rounding. 100 copies instead of the usual
# 1000 keep this page quick, and make LIME less steady.)

import matplotlib.pyplot as plt
import torch
from PIL import Image
from skimage import data

import metfa
from metfa.explainers import LIME

metfa.allocator.keep_freed_memory()  # large batches then do not pay for fresh memory each time
loaded = metfa.models.load("efficientnet-lite0")
images = loaded.preprocess(Image.fromarray(data.chelsea()))[None]
network = metfa.models.fold_batch_norm(loaded.module, images)
settings = {"n_perturbations": 100, "memory_format": torch.channels_last}
target = int(network(images).argmax())

runs = [LIME(network, **settings, rng=seed)(images, target)[0][0] for seed in (1, 2)]

picture = images[0].permute(1, 2, 0).numpy()
fig, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
axes[0].imshow(picture)
axes[0].set_title(f"why “{loaded.class_names[target]}”?")
for ax, run, seed in zip(axes[1:], runs, (1, 2), strict=True):
    ax.imshow(picture * (0.25 + 0.75 * run[..., None].numpy()))
    ax.set_title(f"LIME, seed {seed}")
for ax in axes:
    ax.set_axis_off()
both, either = (runs[0] * runs[1]).sum(), ((runs[0] + runs[1]) > 0).sum()
plt.show()
print(f"Of the pixels that one of the runs shows, both show {float(both / either):.0%}.")

# %%
# What many runs agree on
# -----------------------
#
# `metfa.explain` runs LIME 12 times, each time on a noisy copy and with random numbers of its own. The scores are 0 and
# 1 here, so "the median lies above ½" means that LIME shows the pixel in more than half of the runs; ``threshold=0.5``
# asks just that.

noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
sample = metfa.explain(LIME(network, **settings), images, target, noise=noise, n_samples=12, rng=0)
figure = sample.plot(threshold=0.5, title="12 runs of LIME")

# %%
# Green is what LIME reliably leaves out once the picture is a little noisy. That takes in much of what single runs on
# the clean picture have painted, such as the cheek (the segments move with the noise, too). Yellow would be what it
# reliably shows; on this picture, of which the network is not sure, there is hardly any. Purple is where another run
# may say anything.

print(sample.summary(threshold=0.5)[0])

# sphinx_gallery_thumbnail_number = 1
