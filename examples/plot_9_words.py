"""
Which words decide?
===================

A sentence of a film review, explained word by word by LEMNA: once as it stands, and under synonyms.
"""

# %%
# A sentence and a network
# ------------------------
#
# The bidirectional LSTM that comes with metfa tells favourable from unfavourable sentences. It is no more than an
# example, and right on three sentences in four.

from functools import partial

import numpy as np
import torch

import metfa
from metfa import text

torch.set_num_threads(1)  # recurrent networks gain nothing from more
model = text.load_model("sentiment")
sentence = (
    "Despite a clumsy ending and a few jokes that fall flat, "
    "this is a charming film, told with warmth and wit, "
    "and carried by a brilliant cast."
)
for name, probability in zip(model.class_names, model([sentence])[0], strict=True):
    print(f"{name} {probability:.2f}")

# %%
# Other words, the same meaning?
# ------------------------------
#
# The paper's noise replaces each word by a synonym with probability 0.3. Words without synonyms stay, so fewer than
# 30 % are replaced. Many synonyms are odd, as the senses of a word are not told apart.

noise = text.Synonyms(0.3)
for seed in range(3):
    copy = noise(sentence, np.random.default_rng(seed))
    pairs = zip(sentence.split(), copy.split(), strict=True)
    print(*(f"{old} → {new}" for old, new in pairs if old != new), sep="; ")
covered = noise.coverage(sentence)
print(f"{sum(covered)} of {len(covered)} words have synonyms")

# %%
# One run, and the median of fifty
# --------------------------------
#
# LEMNA leaves words out, 500 times, and fits a linear model in which neighbours' scores are drawn together. Signed
# scores tell what speaks for the class, and what against it. *Vanilla* is the explanation of the sentence itself, and
# all that one usually sees. The bars say how much of it holds when the words change and LEMNA draws other copies.

sample = text.explain_text(
    model,
    sentence,
    explainer=partial(text.LEMNA, scale=False),
    noise=noise,
    n_samples=50,
    rng=0,
)
name = model.class_names[sample.target[0]]
print(f"class {name}, flipped by noise: {sample.flip_rate[0]:.0%}")
figure = metfa.plot.bars(sample, title=f"For “{name}”", max_features=15)

# %%
# The same as a text
# ------------------
#
# The background says how much a word moves the probability of the class, and which way; marked are those whose median
# surely lies on one side of 0, here with a correction for testing all of them. Rest the pointer on a word for its
# figures.


class HTML(str):  # in a notebook: from IPython.display import HTML
    _repr_html_ = str.__str__


HTML(text.render_html(sample, correction="bonferroni"))

# %%
# Is the smoothed explanation better?
# -----------------------------------
#
# On one sentence this says little, but it shows how to ask: leave out the best words, and see how far the probability
# of the class falls, over noisy sentences too. A study of many sentences tells more: :doc:`/howto/texts`.

strong = text.Synonyms(0.5)
rfdt = metfa.metrics.robust(text.fdt, noise=strong, n_samples=10, rng=0)
maps = {"vanilla": sample.vanilla, "smoothed": sample.smoothed()}
for name, map_ in maps.items():
    clean = text.fdt(model, [sentence], map_, sample.target, n=5)
    robust = rfdt(model, [sentence], map_, sample.target, n=5)
    print(f"{name}: FDT {clean.score[0]:.3f}, RFDT {robust.score[0]:.3f}")

# sphinx_gallery_capture_repr = ("_repr_html_",)
