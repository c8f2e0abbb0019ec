"""
Which columns matter, for tumours in general?
=============================================

An error bar of one explanation is about one tumour. A sentence such as "the model relies on the concave points" is
about all tumours like these. For it the rows of the table are the samples, and the error bar is about the population.
"""

# %%
# A model, and 200 rows that it has not seen
# ------------------------------------------

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metfa

table = load_breast_cancer()
order = np.random.default_rng(0).permutation(len(table.data))
seen, unseen = order[200:], order[:200]
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(table.data[seen], table.target[seen])
print(f"accuracy on unseen rows: {model.score(table.data[unseen], table.target[unseen]):.3f}")

# %%
# The scores of a linear model are exact: the weight of a column, times how far its value lies from the mean. Here they
# speak for class 1, "benign".

scaler, weights = model[0], model[1].coef_


def contribution(inputs, target):
    side = np.where(target == 1, 1, -1)[:, None]
    return side * weights * (inputs - scaler.mean_) / scaler.scale_


contribution.signed = True
noise = metfa.noise.per_column(table.data[seen], 0.2, feature_names=table.feature_names)
run = metfa.Run(feature_names=table.feature_names)
sample = metfa.explain(contribution, table.data[unseen], 1, noise=noise, n_samples=20, batch_size=1000, rng=0, run=run)

# %%
# Global importance, with error bars
# ----------------------------------
#
# One number of each row: the absolute value of its score without noise. The bars are about the median of this number
# over all tumours of which these 200 are a sample. Holm's correction keeps the probability of any false amber bar at
# 5 %.

population = sample.across_inputs()
print(repr(population))
figure = population.plot(correction="holm", title="How much each column matters")

# %%
# The noisy copies of a row are no further rows. Counting them would make 4,000 scores of 200, with error bars that are
# far too short. Only the number of a row changes with ``of="mean"``: the mean over its copies.

of_rows = population.confidence_interval()
of_copies = metfa.stats.median_interval(np.abs(sample.values).reshape(-1, 30))
for name, interval in {"rows": of_rows, "copies, wrongly": of_copies}.items():
    print(f"mean width of the intervals from {name}: {np.mean(interval.high - interval.low):.3f}")

# %%
# Which above which?
# ------------------
#
# Error bars of two columns may overlap, and yet one may be larger in most rows. The differences within each row say it,
# for all 435 pairs at once. Amber: the column of the line scores above that of the column.

print(population.ranking())
figure = metfa.plot.ranking(population, max_features=12)

# %%
# In which direction?
# -------------------
#
# With their signs, the scores of most columns lie on both sides of 0: a large value speaks against "benign", a small
# one for it. So the median of a signed score says little about importance. Each row is a point.

signed = sample.across_inputs(absolute=False)
figure = metfa.plot.beeswarm(signed, max_features=12, title="How each column acts")

# %%
# Would another training say the same?
# ------------------------------------
#
# Twelve models, each of another bootstrap sample of the training rows, and one tumour. Now the models are the samples.


def trained(seed):
    drawn = np.random.default_rng(seed).choice(seen, len(seen))
    return make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(table.data[drawn], table.target[drawn])


def explainer(model):
    def contribution(inputs, target):
        side = np.where(target == 1, 1, -1)[:, None]
        return side * model[1].coef_ * (inputs - model[0].mean_) / model[0].scale_

    contribution.signed = True
    return contribution


models = [trained(seed) for seed in range(12)]
one = table.data[unseen][:1]
retrained = metfa.across_models(models, explainer, one, target=1, run=run)
figure = retrained.plot(max_features=12, correction="holm", title="One tumour, twelve trainings")

# %%
# The spread under the noise and that of the training are different things, and here is how large each is:

print(metfa.spread(models, explainer, one, 1, noise=noise, n_samples=20, rng=0, batch_size=100))

# %%
# What this says, and what it does not say
# ----------------------------------------
#
# The first bars are about *this* model over tumours like these 200; the last about *this* tumour over models trained
# like these twelve. Neither says that a column causes anything. Columns that are nearly copies of each other (radius,
# perimeter, area) share their weight as the training happens to divide it.
