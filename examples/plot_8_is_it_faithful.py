"""
Is the smoothed map as faithful?
================================

Insertion and deletion on one photograph, for the vanilla and the smoothed map, also under noise.
"""

# %%
# Two maps
# --------
#
# RISE on a cup of coffee, once on the picture as it is, and smoothed over 10 noisy copies.

import torch
from PIL import Image
from skimage import data

import metfa
from metfa import metrics

metfa.allocator.keep_freed_memory()  # large batches then do not pay for fresh memory each time
loaded = metfa.models.load("efficientnet-lite0")
images = loaded.preprocess(Image.fromarray(data.coffee()))[None]
network = metfa.models.fold_batch_norm(loaded.module, images)
layout = {"memory_format": torch.channels_last}
noise = metfa.noise.Gaussian(0.1, bounds=(0, 1))

explainer = metfa.explainers.RISE(network, n_masks=150, **layout)
sample = metfa.explain(explainer, images, noise=noise, n_samples=10, rng=0)
maps = {"vanilla": sample.vanilla, "smoothed": sample.smoothed()}
print(loaded.class_names[sample.target[0]])

# %%
# What the model sees in their best pixels
# ----------------------------------------
#
# Insertion shows the pixels of the picture on a blurred one, best first; the sooner the class is seen, the better. On
# one picture this says little: the score is one number, and nobody knows its error.

inserted = {
    name: metrics.insertion(network, images, map_, sample.target, baseline="blur", **layout)
    for name, map_ in maps.items()
}
figure = metfa.plot.curves(inserted, title="insertion, one photograph")

# %%
# The paper's robust score repeats it on noisy pictures with the same map. Both maps meet the same noise, so their
# difference is sharper than either.

robust = metrics.robust(metrics.overall, noise=noise, n_samples=5, rng=0)
for name, map_ in maps.items():
    result = robust(network, images, map_, sample.target, steps=20, **layout)
    print(f"{name}: RO {result.score[0]:.3f}, of single draws {result.ratios[:, 0].round(3)}")

# %%
# Whether smoothing costs faithfulness is a question for a data set, with standard errors over its pictures: see
# :doc:`/howto/studies`.
