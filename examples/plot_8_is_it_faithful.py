"""
Is the smoothed map as faithful?
================================

Insertion and deletion are computed on one photograph, for the vanilla and the smoothed map, also under noise.
"""

# %%
# Two maps
# --------
#
# RISE explains a cup of coffee: once the clean picture, and once smoothed over 10 noisy copies.

from PIL import Image
from skimage import data

import metfa
from metfa import metrics

metfa.allocator.keep_freed_memory()  # then large batches need no new memory each time
loaded = metfa.models.load("efficientnet-lite0")
images = loaded.preprocess(Image.fromarray(data.coffee()))[None]
called = metfa.Called(loaded.module, fast="exact")  # how the network is asked: a copy with fewer layers
noise = metfa.noise.Gaussian(0.1, bounds=(0, 1))

explainer = metfa.explainers.RISE(called, n_masks=150)
sample = metfa.explain(explainer, images, noise=noise, n_samples=10, rng=0)
maps = {"vanilla": sample.vanilla, "smoothed": sample.smoothed()}
print(loaded.class_names[sample.target[0]])

# %%
# What the model sees in their best pixels
# ----------------------------------------
#
# Insertion puts the pixels of the picture into a blurred one, the best pixels first. The map is better if the model
# sees the class sooner. For one picture this says little: the score is one number, and nobody knows its error.

inserted = {
    name: metrics.insertion(called, images, map_, sample.target, baseline="blur") for name, map_ in maps.items()
}
figure = metfa.plot.curves(inserted, title="insertion, one photograph")

# %%
# The paper's robust score repeats this on noisy pictures with the same map. Both maps are judged under the same noise,
# so their difference is more precise than each score.

robust = metrics.robust(metrics.overall, noise=noise, n_outer=5, rng=0)
for name, map_ in maps.items():
    result = robust(called, images, map_, sample.target, steps=20)
    print(f"{name}: RO {result.score[0]:.3f}, of single draws {result.ratios[:, 0].round(3)}")

# %%
# Does smoothing cost faithfulness? Only a data set can answer this: :doc:`/background/claims` has what we measured, and
# :doc:`/howto/studies` shows how you do it with yours.
