"""
A table, with only scikit-learn and NumPy
=========================================

The core of metfa needs neither torch nor images: an explainer is any function from a batch of rows to one number a
feature. Here a small neural network of scikit-learn separates malignant from benign tumours by 30 measurements. An
explainer of ten lines asks what each measurement contributes.
"""

# %%
# A model and a black-box explainer
# ---------------------------------
#
# The explainer replaces one feature at a time by its mean in the training data and records how much the class
# probability falls. This is positive if the measurement speaks for the class, and negative if it speaks against the
# class. The explainer returns the model's scores with the attributions, so flips of the prediction are counted.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metfa

table = load_breast_cancer()
seen, unseen, seen_class, unseen_class = train_test_split(
    table.data, table.target, random_state=0, stratify=table.target
)
model = make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=1000, random_state=0)).fit(seen, seen_class)
print(f"accuracy on unseen rows: {model.score(unseen, unseen_class):.3f}")

centre, spread = seen.mean(axis=0), seen.std(axis=0)


def ablation(inputs, target):
    rows, maps = np.arange(len(inputs)), np.empty_like(inputs)
    scores = model.predict_proba(inputs)
    for feature in range(inputs.shape[1]):
        without = inputs.copy()
        without[:, feature] = centre[feature]
        maps[:, feature] = (scores - model.predict_proba(without))[rows, target]
    return maps, scores


# %%
# A noise for measurements
# ------------------------
#
# Columns have units, so the noise must know their scale. This noise is normal, with a quarter of the standard deviation
# of each column. Any function of one row and a generator is a noise.


def measurement_error(x, rng):
    return x + 0.25 * spread * rng.standard_normal(x.shape)


# %%
# We take two tumours: the network is sure about one, and least sure about the other.

probability = model.predict_proba(unseen).max(axis=1)
rows = [int(np.argsort(probability)[len(probability) // 4]), int(np.argmin(probability))]
sample = metfa.explain(
    ablation, unseen[rows], noise=measurement_error, predict=model.predict_proba, n_samples=50, rng=0
)
for row in range(2):
    name = table.target_names[sample.target[row]]
    print(f"{name} with probability {sample.scores[row].max():.2f}, flipped by noise: {sample.flip_rate[row]:.0%}")

# %%
# Signed scores: for, against, undecided
# --------------------------------------
#
# These attributions have a sign, so the question is on which side of zero the median lies: the threshold 0. With 30
# features tested at once, Bonferroni's correction keeps the probability of any false "for" at 5 % at most. The same
# holds for "against".

side = sample.significance_map(0, correction="bonferroni")
interval = sample.confidence_interval(0.95)
smoothed = sample.smoothed()
colours = metfa.plot.PALETTES["colourblind"]

fig, axes = plt.subplots(1, 2, figsize=(11, 6.8), layout="constrained")
for row, ax in enumerate(axes):
    order = np.argsort(smoothed[row])
    for mark, colour, name in (
        (1, colours.positive, "for"),
        (0, colours.no_sign, "undecided"),
        (-1, colours.negative, "against"),
    ):
        place = np.flatnonzero(side[row][order] == mark)
        bars = (ends[row][order][place] for ends in (interval.low, interval.high))
        ax.hlines(place, *bars, colour, linewidth=5, label=f"{name}: {len(place)}")
    ax.plot(smoothed[row][order], np.arange(30), "|", color="black", markersize=8, label="smoothed")
    ax.plot(sample.vanilla[row][order], np.arange(30), "x", color="crimson", markersize=5, label="vanilla")
    ax.axvline(0, color="black", linestyle=":")
    ax.set_yticks(np.arange(30), labels=table.feature_names[order], fontsize="small")
    ax.set_title(
        f"{table.target_names[sample.target[row]]} ({sample.scores[row].max():.2f}), "
        f"{sample.flip_rate[row]:.0%} of the noisy copies flip"
    )
    ax.set_xlabel("fall of the class probability without the feature")
    ax.legend(frameon=False, loc="lower right")
fig.suptitle(f"Exact {interval.confidence_level:.1%} intervals from 50 noisy copies of two rows")
plt.show()
