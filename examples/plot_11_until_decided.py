"""
As many samples as needed, and what they certify
================================================

How many noisy copies are enough? It depends on the picture. Here two photographs are explained by class activation
maps until at most a twentieth of the pixels is undecided. Then the same counts say how far the picture can change
before the verdict on a pixel can change.
"""

# %%
# Two pictures, one rule
# ----------------------
#
# ``n_samples`` takes a rule in place of a number. After each round the pixels are tested by e-values; one may look at
# these at any time. The first ten samples give the threshold, and the others are tested against it.

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from skimage import data

import metfa

loaded = metfa.models.load("efficientnet-lite0")
explainer = metfa.explainers.CAM(loaded.module)
noise = metfa.noise.Gaussian(0.1, bounds=(0, 1))
rule = metfa.Until(undecided=0.05, max_samples=150)

samples = {}
for name, photograph in {"coffee": data.coffee(), "astronaut": data.astronaut()}.items():
    images = loaded.preprocess(Image.fromarray(photograph))[None]
    samples[name] = metfa.explain(explainer, images, noise=noise, n_samples=rule, rng=0)
    print(f"{name}: {samples[name].stopping}")

# %%
# What the looks saw
# ------------------
#
# Looking does not raise the error. The curve shows how the undecided share falls. ``plan`` says how many samples a
# smaller share would probably need.

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
# The noise is Gaussian, so the counts say more. Take any change of the picture that is shorter (in L2) than the radius
# of a pixel. The median of its score under the noise stays on its side of the threshold, for this class. The radius is
# 0 where nothing was decided. Where all samples agree, it is the largest that this number of samples can give (the flat
# colour below). It falls towards the edge between important and unimportant pixels.

sample = samples["coffee"]
radius = sample.certified_radius()[0]
agreed = np.mean(radius == radius.max())
print(f"{np.mean(radius > 0):.0%} of the pixels are certified, {agreed:.0%} for the largest radius, {radius.max():.3f}")
metfa.plot.certificate(sample, title="coffee: certified L2 radii")

# %%
# These radii are small: a change of every one of the 150,528 numbers by a single level of 255 is
# :math:`\sqrt{150528}/255 = 1.5` long. A certificate covers faint changes or changes of few pixels. It is no defence
# against an attacker who may change the whole picture a little: see :doc:`/howto/until`.

# sphinx_gallery_thumbnail_number = 2
