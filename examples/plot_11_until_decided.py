"""
As many samples as it takes, and what they certify
==================================================

How many noisy copies are enough? It depends on the picture. Here two photographs are explained, by class activation
maps, until no more than a twentieth of the pixels is undecided; then the same counts say how far the picture could be
changed before a pixel's verdict turns round.
"""

# %%
# Two pictures, one rule
# ----------------------
#
# In place of a number, ``n_samples`` takes a rule. After each round the pixels are tested by e-values, which one may
# look at as often as one likes. The first ten samples give the threshold, the others are tested against it.

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from skimage import data

import metfa

loaded = metfa.models.load("efficientnet-lite0")
explainer = metfa.explainers.CAM(loaded.module)
noise = metfa.noise.Gaussian(0.1, bounds=(0, 1))
rule = metfa.until(undecided=0.05, max_samples=150)

samples = {}
for name, photograph in {"coffee": data.coffee(), "astronaut": data.astronaut()}.items():
    images = loaded.preprocess(Image.fromarray(photograph))[None]
    samples[name] = metfa.explain(explainer, images, noise=noise, n_samples=rule, rng=0)
    print(f"{name}: {samples[name].stopping}")

# %%
# What was seen on the way
# ------------------------
#
# To have looked costs nothing in error. The curve says how the undecided share falls, and ``plan`` how many samples a
# smaller share would likely take.

fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for name, sample in samples.items():
    looks = [look for look in sample.stopping.looks if look.n_samples > sample.stopping.split]
    ax.plot([look.n_samples for look in looks], [look.undecided for look in looks], marker="o", label=name)
ax.axhline(rule.undecided, color="black", linewidth=0.8, linestyle=":")
ax.set(xlabel="samples N", ylabel="undecided share of the pixels", ylim=(0, 1))
ax.legend(frameon=False)
plt.show()

for name, sample in samples.items():
    print(f"{name}: {sample.plan(0.02)}")

# %%
# How far a verdict holds
# -----------------------
#
# The noise is Gaussian, so the counts promise more: whatever change of the picture is shorter (in L2) than a pixel's
# radius, the median of its score under the noise stays on its side of the threshold, for this class. 0 where nothing
# was decided. Where all samples agree the radius is as large as so many samples can make it, the flat colour below; it
# falls towards the edge between what is important and what is not.

sample = samples["coffee"]
radius = sample.certified_radius()[0]
agreed = np.mean(radius == radius.max())
print(f"{np.mean(radius > 0):.0%} of the pixels are certified, {agreed:.0%} for the largest radius, {radius.max():.3f}")
metfa.plot.certificate(sample, title="coffee: certified L2 radii")

# %%
# These radii are small: a change of every one of the 150,528 numbers by a single level of 255 is
# :math:`\sqrt{150528}/255 = 1.5` long. A certificate speaks of faint or concentrated changes, and is no defence against
# an attacker who may touch the whole picture a little: see :doc:`/howto/until`.

# sphinx_gallery_thumbnail_number = 2
