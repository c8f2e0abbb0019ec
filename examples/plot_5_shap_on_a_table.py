"""
SHAP values of a forest, with error bars
========================================

Tree SHAP is exact: it has no randomness of its own, and every run gives the same numbers. But the table that it
explains was measured. A second measurement of the same tumour would give other numbers, and so other SHAP values. Which
of these values would keep their sign?
"""

# %%
# A forest and its explainer
# --------------------------
#
# `metfa.explainers.from_shap` takes any explainer of SHAP and the function that predicts.

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
# An area varies by hundreds, a smoothness by thousandths. `metfa.noise.per_column` takes the standard deviation of each
# column from the training table; here we use a fifth of it. How far a second measurement really lies from the first,
# only the people who measure can say. The error bars hold for this noise and for no other. (If a table has categories,
# name them in ``categorical=``; they are then not changed.)

noise = metfa.noise.per_column(seen, 0.2, feature_names=table.feature_names)
for name, std in list(zip(table.feature_names, noise.std, strict=True))[:5]:
    print(f"{name:<16} ± {std:.3g}")

# %%
# All unseen tumours at once, 50 noisy copies of each: tree SHAP is fast.

sample = metfa.explain(
    explainer,
    unseen,
    noise=noise,
    n_samples=50,
    batch_size=1000,
    rng=0,
    run=metfa.Run(feature_names=table.feature_names),
)
interval = sample.confidence_interval()
undecided = (interval.low <= 0) & (interval.high >= 0)
turned = sample.vanilla * sample.smoothed() < 0
largest = np.argsort(-np.abs(sample.vanilla), axis=1)[:, :5]
for name, found in {"undecided": undecided, "with the other sign": turned}.items():
    among = np.take_along_axis(found, largest, axis=1).mean()
    print(f"{name}: {found.mean():.1%} of all SHAP values, {among:.1%} of the five largest of each tumour")

# %%
# So the signs of the large values are mostly safe, but the signs of the small values are not. The means hide the
# tumours that lie at a boundary of the trees. Here are two tumours: the forest is surest about one; the other was
# chosen because it has the widest interval of all.

width = (interval.high - interval.low).max(axis=1)
sure, moved = int(sample.scores.max(axis=1).argmax()), int(width.argmax())


def title(row):
    name, score = table.target_names[sample.target[row]], sample.scores[row].max()
    return f"“{name}” with probability {score:.2f}; noise flips {sample.flip_rate[row]:.0%} of the predictions"


# %%
# Positive, negative, undecided
# -----------------------------
#
# SHAP values are signed, so each bar says on which side of zero the median lies, at 5 % a side. Amber speaks for the
# class, blue speaks against it, and a grey bar is undecided. The diamond is the SHAP value of the measured row.

figure = sample.plot(index=sure, title=title(sure), max_features=15)

# %%
# The sure tumour has short error bars, so one could read its values without them. For the other this is not so:

figure = sample.plot(index=moved, title=title(moved), max_features=15)

# %%
# A tree asks whether a measurement lies above a threshold. If a row lies close to a threshold, a little noise changes
# the answer, and the value jumps. The single SHAP value is exact, but it is then one of many values that disagree. Here
# they disagree less in their signs than in their sizes, and so in the order of the features.
#
# With 30 features at once, some would be coloured by chance: at 5 % a side, up to 1.9 of 30 if all medians are zero. A
# correction keeps the probability of any false amber bar at 5 %, and that of any false blue bar too. The error bars are
# still those of each feature alone.

figure = sample.plot(index=moved, title=title(moved), max_features=15, correction="bonferroni")

# %%
# What this says, and what it does not say
# ----------------------------------------
#
# The intervals hold, at their exact level, for the median SHAP value of *this forest* under *this noise*. They say
# nothing about another forest, trained on other rows, and nothing about whether a measurement causes anything. Some
# columns of this table are nearly copies of each other (radius, perimeter, area), but the noise moves each column by
# itself. Columns of real second measurements would move together.
