"""
Which words decide?
===================

LEMNA explains a sentence of a film review word by word: the sentence itself, and copies with synonyms.
"""

# %%
# A sentence and a network
# ------------------------
#
# The bidirectional LSTM that comes with metfa separates favourable from unfavourable sentences. It is only an example,
# and right for three sentences in four.

from functools import partial

import numpy as np
import torch

import metfa
from metfa import text

torch.set_num_threads(1)  # recurrent networks are no faster with more
model = text.load_model("sentiment")
sentence = (
    "Despite a clumsy ending and a few jokes that fall flat, "
    "this is a charming film, told with warmth and wit, "
    "and carried by a brilliant cast."
)
for name, probability in zip(model.class_names, model([sentence])[0], strict=True):
    print(f"{name} {probability:.2f}")

# %%
# Other words, the same meaning
# -----------------------------
#
# The noise replaces a word by a synonym in the sense that it most often has. Words of several senses of which none
# prevails (*fall*, *flat*, *cast*) stay. The paper's noise takes any sense: it covers more words, and many of its
# synonyms are strange.


def changes(noise):
    """What three copies change, and how many words have synonyms."""
    for seed in range(3):
        copy = noise(sentence, np.random.default_rng(seed))
        pairs = zip(sentence.split(), copy.split(), strict=True)
        print(*(f"{old} → {new}" for old, new in pairs if old != new), sep="; ")
    covered = noise.coverage(sentence)
    print(f"{type(noise).__name__}: {sum(covered)} of {len(covered)} words have synonyms")


noise = text.SenseSynonyms(0.5)
changes(noise)
changes(text.Synonyms(0.3))

# %%
# One run, and the median of fifty
# --------------------------------
#
# LEMNA leaves words out 500 times and fits a linear model that draws the scores of neighbouring words together.
# Positive scores speak for the class, negative scores against it. *Vanilla* is the explanation of the sentence itself;
# usually one sees nothing else. The bars say how much of it holds when the words change and LEMNA draws other copies.
# The title is red, and the bars are faint, because the noise changes the prediction in a third of the copies. To this
# small network *ungainly* is a far worse sign than *clumsy*.

sample = text.explain_text(
    model,
    sentence,
    method=partial(text.LEMNA, scale=False),
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
# The background says how much a word moves the probability of the class, and in which direction. A word is marked if
# the test decides on which side of 0 its median lies, here with a correction for all words. Rest the pointer on a word
# to see its figures.


class HTML(str):  # in a notebook: from IPython.display import HTML
    _repr_html_ = str.__str__


HTML(text.render_html(sample, correction="bonferroni"))

# %%
# Is the smoothed explanation better?
# -----------------------------------
#
# For one sentence this says little, but it shows how to ask. Leave out the best words and see how far the probability
# of the class falls, also for noisy sentences. A study of many sentences says more: on the clean text the best words of
# one explanation are the more faithful ones (:doc:`/background/claims`).

strong = text.SenseSynonyms(1)
rfdt = metfa.metrics.robust(text.fdt, noise=strong, n_outer=10, rng=0)
maps = {"vanilla": sample.vanilla, "smoothed": sample.smoothed()}
for name, map_ in maps.items():
    clean = text.fdt(model, [sentence], map_, sample.target, n=5)
    robust = rfdt(model, [sentence], map_, sample.target, n=5)
    print(f"{name}: FDT {clean.score[0]:.3f}, RFDT {robust.score[0]:.3f}")

# sphinx_gallery_capture_repr = ("_repr_html_",)
