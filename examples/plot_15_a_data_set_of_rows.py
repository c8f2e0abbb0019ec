"""
Which columns matter in which rows
==================================

A forest tells malignant tumours from benign ones. One call explains 150 of them by SHAP, with noise that is made from
the training table. Then all of them are one table, one picture and one page.

Needs scikit-learn, shap and pandas.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import metfa

data = load_breast_cancer(as_frame=True)
names = data.target.map({0: "malignant", 1: "benign"})
train, rows = data.data.iloc[150:], data.data.iloc[:150]
forest = RandomForestClassifier(40, max_depth=6, random_state=0).fit(train, names.iloc[150:])

sample = metfa.tables.explain(forest, rows, "malignant", background=train, n_samples=30, rng=0)
print(sample.provenance["picked"])

# %%
# As a table
# ----------
#
# A line for each tumour and measurement: the score, its interval and what is decided.

frame = sample.to_dataframe(correction="holm")
print(frame[["input", "feature_name", "value", "score", "lower", "upper", "kind"]].iloc[20:26].to_string(index=False))

# %%
# In how many tumours does a measurement speak for "malignant", and in how many is that undecided?

counts = frame.pivot_table(index="feature_name", columns="kind", values="input", aggfunc="count", fill_value=0)
print(counts.sort_values("positive", ascending=False).head(6).to_string())

# %%
# As a picture
# ------------
#
# Each line is a tumour. Amber speaks for "malignant", blue against it, and the stronger the colour, the larger the
# score. Hatched cells are undecided: these samples do not show on which side of 0 the median lies.

figure = metfa.plot.table(sample, title="150 tumours", correction="holm", max_features=20)

# %%
# Tumours of one kind stand together, by the measurement that speaks most. Where the picture is hatched, a list of
# "the most important measurements of this patient" would be made of chance.
#
# Some tumours, in the order that you want:

undecided = (sample.significance_map(correction="holm") == 0).sum(axis=1)
figure = metfa.plot.table(
    sample, rows=undecided.argsort()[-8:], title="The least decided", correction="holm", max_features=20
)

# %%
# The page for readers is ``sample.report("tumours.html")``. There a row is found by its name or by its marks, and shows
# its bars with intervals.
