"""
SHAP values of a forest, with error bars
========================================

Tree SHAP is exact: it has no randomness of its own, and every run gives the same numbers. But the table that it
explains was measured, and a second measurement of the same tumour would give other numbers in, and other values out.
Which of them would keep their sign?
"""

# %%
# A forest and its explainer
# --------------------------
#
# `metfa.explainers.from_shap` takes any of SHAP's explainers, and the function that predicts.

import numpy as np
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import metfa
from metfa.explainers import from_shap

table = load_breast_cancer()
seen, unseen, seen_class, unseen_class = train_test_split(
    table.data, table.target, random_state=0, stratify=table.target
)
forest = RandomForestClassifier(100, random_state=0).fit(seen, seen_class)
print(f"accuracy on unseen rows: {forest.score(unseen, unseen_class):.3f}")

explainer = from_shap(shap.TreeExplainer(forest), forest.predict_proba)

# %%
# Noise in the units of each column
# ---------------------------------
#
# An area varies by hundreds, a smoothness by thousandths. `metfa.noise.per_column` takes the standard deviation of
# each column from the training table, here a fifth of it. How far a second measurement really lies from the first is
# a question to whoever measures; the error bars answer for this noise and for no other. (A table with categories
# would name them in ``categorical=``, and they would be left exactly as they are.)

noise = metfa.noise.per_column(seen, 0.2, feature_names=table.feature_names)
for name, std in list(zip(table.feature_names, noise.std, strict=True))[:5]:
    print(f"{name:<16} ± {std:.3g}")

# %%
# All unseen tumours at once, 50 noisy copies of each: tree SHAP is fast.

sample = metfa.explain(
    explainer, unseen, noise=noise, n_samples=50, batch_size=1000, rng=0, feature_names=table.feature_names
)
interval = sample.confidence_interval()
undecided = (interval.low <= 0) & (interval.high >= 0)
turned = sample.vanilla * sample.smoothed() < 0
largest = np.argsort(-np.abs(sample.vanilla), axis=1)[:, :5]
for name, found in {"undecided": undecided, "with the other sign": turned}.items():
    among = np.take_along_axis(found, largest, axis=1).mean()
    print(f"{name}: {found.mean():.1%} of all SHAP values, {among:.1%} of the five largest of each tumour")

# %%
# So the signs of the large values are mostly safe, and those of the small ones are not. The means hide the tumours that
# lie at a boundary of the trees. Here is the one that the forest is surest of, and the one with the widest interval of
# all, chosen for that.

width = (interval.high - interval.low).max(axis=1)
sure, moved = int(sample.scores.max(axis=1).argmax()), int(width.argmax())


def title(row):
    name, score = table.target_names[sample.target[row]], sample.scores[row].max()
    return f"“{name}” with probability {score:.2f}; noise flips {sample.flip_rate[row]:.0%} of the predictions"


# %%
# Positive, negative, undecided
# -----------------------------
#
# SHAP values are signed, so each bar answers on which side of zero the median lies: red speaks for the class, blue
# against it, and where the exact interval holds the zero the bar is grey. The diamond is the SHAP value of the row as
# it was measured.

figure = sample.plot(index=sure, title=title(sure), max_features=15)

# %%
# The sure one has short error bars, and its values could be read off without them. Not so the other:

figure = sample.plot(index=moved, title=title(moved), max_features=15)

# %%
# A tree asks whether a measurement lies above a threshold; where the row lies beside one, a little noise turns the
# answer, and the value jumps. The single SHAP value, though exact, is then one out of many that disagree: here less on
# the signs than on the sizes, and so on the order of the features.
#
# With 30 features asked at once, some would be called by chance: at 2.5 % a side up to 1.5 of 30 whose median is zero.
# A correction keeps the probability of any wrong call at 5 %; the error bars stay those of each feature alone.

figure = sample.plot(index=moved, title=title(moved), max_features=15, correction="bonferroni")

# %%
# What this says, and what it does not
# ------------------------------------
#
# The intervals hold, at their exact level, for the median SHAP value of *this forest* under *this noise*. Another
# forest, trained on other rows, is another matter, and so is the question whether a measurement causes anything.
# Columns of this table are nearly copies of each other (radius, perimeter, area), while the noise moves each alone:
# the noisy rows are less alike than real second measurements would be.
