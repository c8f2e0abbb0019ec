"""
Why this class and not that one? Differences with error bars
============================================================

Two maps that look different need not differ, and two that look alike may. Here both explanations see the same noisy
copies, and what is tested is the difference in each copy.
"""

# %%
# Why this class and not that one?
# --------------------------------
#
# These are class activation maps for a photograph of a cup of coffee. The map of the second most probable class is
# subtracted from that of the predicted class, in each of 30 noisy copies. A class that is more probable has larger
# scores everywhere, so each map is divided by its own mean first. What differs then is *where* the scores are.

from PIL import Image
from skimage import data

import metfa

loaded = metfa.models.load("efficientnet-lite0")
explainer = metfa.explainers.CAM(loaded.module)
images = loaded.preprocess(Image.fromarray(data.coffee()))[None]
noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
found = metfa.contrast(explainer, images, noise=noise, n_samples=30, scale="mean", rng=0)
print(found.summary(correction="bh")[0])

# %%
# Both maps have one colour scale, and the difference has a scale of its own about 0. Beside it stands what each pixel
# differs by at least: the end of its interval that is nearer to 0. The last panel shows where the difference is
# significant. Where no colour is, nothing is *shown to differ*, which does not show that it does not.

metfa.plot.comparison(found, correction="bh", title="coffee: why the first class and not the second?")

# %%
# By how much, at most?
# ---------------------
#
# A statement that something did *not* change needs a size. The dots show where the median difference is shown to lie
# within plus and minus `delta`.

metfa.plot.comparison(found, correction="bh", delta=0.1, title="dotted: median difference within ±0.1")

# %%
# Parts of the picture
# --------------------
#
# A few parts need less evidence than 50,176 pixels, and each has its interval.

parts = metfa.regions.superpixels(found, 20)
metfa.plot.regions(found.over(parts), pixels=found, correction="holm", title="coffee: parts that differ")
