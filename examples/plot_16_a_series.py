"""
Which beat? Error bars for a series
===================================

A small network tells artificial ECGs apart: some records have one early, wide beat. Does its explanation
point at that beat, and which steps of the series are significantly important?
"""

# %%
# An ECG made by hand
# -------------------
#
# Each beat is a sum of five bumps, its waves P, Q, R, S and T. Three leads see it with different strengths. In a record
# of class 1 one beat is early, wide and upside down.

import numpy as np
import torch

import metfa

RATE, STEPS = 200, 800  # 200 Hz, four seconds
LEADS = ["I", "II", "V2"]
SEEN = np.array([0.6, 1.0, -0.7])
BUMPS = [(-0.2, 0.15, 0.025), (-0.03, -0.12, 0.01), (0.0, 1.0, 0.012), (0.03, -0.25, 0.012), (0.25, 0.3, 0.045)]


def beat(times, at, wide=1.0, height=1.0):
    """One beat at a time, in millivolts."""
    bumps = [size * np.exp(-(((times - at - wide * where) / (wide * width)) ** 2) / 2) for where, size, width in BUMPS]
    return height * sum(bumps)


def record(rng, ill):
    """Three leads (3, steps), and when the early beat is; nan for a healthy record."""
    times = np.arange(STEPS) / RATE
    beats = np.cumsum(rng.normal(0.8, 0.03, 6)) - 0.5
    odd = rng.integers(1, 4) if ill else -1
    wave = np.zeros(STEPS)
    for number, at in enumerate(beats):
        wave += beat(times, at - 0.2, wide=2.6, height=-0.9) if number == odd else beat(times, at)
    return SEEN[:, None] * wave + rng.normal(0, 0.03, (3, STEPS)), beats[odd] - 0.2 if ill else np.nan


rng = np.random.default_rng(0)
classes = np.arange(200) % 2
records = torch.tensor(np.stack([record(rng, ill)[0] for ill in classes]), dtype=torch.float32)

# %%
# A network with two layers of convolutions learns the difference in a few seconds.

torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Conv1d(3, 8, 31, padding=15),
    torch.nn.ReLU(),
    torch.nn.MaxPool1d(4),
    torch.nn.Conv1d(8, 8, 15, padding=7),
    torch.nn.ReLU(),
    torch.nn.AdaptiveMaxPool1d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(8, 2),
)
optimiser = torch.optim.Adam(network.parameters(), lr=0.005)
for _ in range(60):
    chosen = torch.tensor(rng.integers(0, 200, 32))
    loss = torch.nn.functional.cross_entropy(network(records[chosen]), torch.tensor(classes)[chosen])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
network.eval()
new = [record(rng, ill) for ill in np.arange(100) % 2]
answers = network(torch.tensor(np.stack([leads for leads, _ in new]), dtype=torch.float32)).argmax(1)
print(f"right on new records: {(answers.numpy() == np.arange(100) % 2).mean():.0%}")

# %%
# Which steps are important?
# --------------------------
#
# The gradient of the class "one odd beat" for 40 noisy copies of a new record. `metfa.plot.Series` says what the axes
# are: time in seconds, and the names of the leads. Amber steps are significantly important.

leads, odd = new[1]
inputs = torch.tensor(leads, dtype=torch.float32)[None]
noise = metfa.noise.Gaussian(0.05)
sample = metfa.explain(metfa.explainers.Gradient(network), inputs, 1, noise=noise, n_samples=40, rng=0)
kind = metfa.plot.Series(sampling_rate=RATE, channels=LEADS)
sample.plot(kind=kind, correction="bh", title=f"a record with an odd beat at {odd:.2f} s")

# %%
# Which windows get more than the rest?
# -------------------------------------
#
# Single steps flicker. Windows of a tenth of a second are asked as a whole: does a window get more than the rest of the
# record? No threshold has to be chosen, and Holm's correction makes each of the statements safe.

windows = metfa.regions.windows(sample, RATE // 10)
pooled = sample.over(windows, against="rest")
pooled.plot(kind=kind, correction="holm", title=f"windows of 0.1 s; the odd beat is at {odd:.2f} s")

# %%
# The marks say where the method looks, with its noise, and not that the network is right.

found = np.flatnonzero(pooled.significance_map(correction="holm")[0] == 1)
print(f"{len(found)} of {len(windows)} windows get more than the rest,")
print(f"from {found.min() / 10:.1f} to {(found.max() + 1) / 10:.1f} s")

# sphinx_gallery_thumbnail_number = 2
