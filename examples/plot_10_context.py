"""
Which surroundings does it need?
================================

A segmentation network finds a digit 3 by the grass beside it. GridSaliency shows the context that it needs, and the
median test shows which part of this context is more than noise.
"""

# %%
# A network with a known bias
# ---------------------------
#
# ``planted_context.py``, beside this script, draws digits on textures and trains a small network on them. Grass covers
# half of an image if and only if the digit is a 3. The network learns this: without grass it does not find the 3.

import numpy as np
import planted_context
import torch

from metfa import segmentation

torch.set_num_threads(1)
network, draw = planted_context.small_biased_network(0)
for row, values in planted_context.check(network, planted_context.SMALL).items():
    print(f"mean IoU, {row}: " + ", ".join(f"{name} {value:.2f}" for name, value in values.items()))

# %%
# The context of a 3
# ------------------
#
# The region that the network gives the digit stays in the image. A coarse mask lets as little else through as the digit
# needs, in the clean image (vanilla) and in ten noisy ones. The images have 32 x 32 pixels, so small objects are normal
# here.

three = planted_context.SMALL.digits.index(3) + 1
scenes = draw(4, np.random.default_rng(3), digit=3)
explained = [segmentation.explain_context(network, image, three, min_pixels=20, rng=0) for image in scenes.images]
figure = explained[0].plot(title="What does the network need to find the 3?", threshold=0.3)

# %%
# How much of the grass is marked in all four images, and how much of the rest?

shares = {"vanilla": [], "significant": []}
for found, grass in zip(explained, scenes.grass.numpy(), strict=True):
    for name, marks in (("vanilla", found.above(0.3)), ("significant", found.significant(0.3))):
        shares[name].append((marks[grass & ~found.region].mean(), marks[~grass & ~found.region].mean()))
for name, pairs in shares.items():
    of_grass, of_rest = np.mean(pairs, axis=0)
    print(f"{name}: {of_grass:.0%} of the grass, {of_rest:.0%} of the rest")

# %%
# The network does not need all of the grass. A part of it is enough, and this part may change with the noise. So the
# median test marks less of the grass than one explanation does. It also marks less of the rest, and this is its
# purpose.

# %%
# Is it enough?
# -------------
#
# We blur everything except the digit and its context, as for the mask. Which share of the digit's probability is left?

from metfa.explainers import Blur

found = explained[0]
outside = ~found.region
for name, context in (("nothing", outside & False), ("significant", found.significant(0.3)), ("all", outside)):
    scores = segmentation.context_faithfulness(
        network, scenes.images[:1], context, three, region=found.region, baseline=Blur(10.0)
    )
    print(f"{name}: {scores.score[0]:.2f}")

# %%
# A digit that needs no context
# -----------------------------
#
# For an 8, no texture helped the network in training.

eight = planted_context.SMALL.digits.index(8) + 1
other = draw(1, np.random.default_rng(4), digit=8).images[0]
found = segmentation.explain_context(network, other, eight, min_pixels=20, rng=0)
figure = found.plot(title="And to find an 8?", threshold=0.3)
