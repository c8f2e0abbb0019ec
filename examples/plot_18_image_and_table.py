"""
A picture and a table in one network
====================================

A network gets a handwritten digit and a row of three numbers. It says whether the digit and the first number are
together ten or more. The other two numbers are noise. The picture has 64 features, the table 3, and their scores have
no scale in common. One threshold for both would decide about the picture alone.
"""

# %%
# The network
# -----------

import numpy as np
import torch
from captum.attr import IntegratedGradients
from sklearn.datasets import load_digits

import metfa

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
tables = torch.rand(len(images), 3)
labels = (torch.tensor(digits.target) + 10 * tables[:, 0] >= 10).long()


class Both(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.look = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU())
        self.decide = torch.nn.Sequential(torch.nn.Linear(32 + 3, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))

    def forward(self, image, table):
        return self.decide(torch.cat([self.look(image), table], dim=1))


model = Both()
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(150):
    loss = torch.nn.functional.cross_entropy(model(images[300:], tables[300:]), labels[300:])
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
model.eval()
right = (model(images[:300], tables[:300]).argmax(1) == labels[:300]).float().mean()
print(f"accuracy on unseen pictures and tables: {right:.2f}")

# %%
# One result with two parts
# -------------------------
#
# The explainer returns a dict with an array for each input. Each part has a noise of its own. Pixels stay in [0, 1],
# and the numbers of the table move by a twentieth of their range.

method = IntegratedGradients(model)


def explainer(inputs, target):
    image, table = method.attribute((inputs["image"], inputs["table"]), target=target, n_steps=20)
    return {"image": image[:, 0], "table": table}


explainer.signed = True  # a score below 0 speaks against the class


row = 7  # a seven
inputs = {"image": images[row : row + 1], "table": tables[row : row + 1]}
result = metfa.explain(
    explainer,
    inputs,
    predict=lambda inputs: model(inputs["image"], inputs["table"]),
    noise={"image": metfa.noise.Uniform(0.1, bounds=(0, 1)), "table": metfa.noise.Gaussian(0.05)},
    n_samples=30,
    rng=0,
    run=metfa.Run(feature_names={"table": ["a tenth of the number", "idle", "idle too"]}),
)
print(result)
figure = result.plot(title=f"A {digits.target[row]} and {10 * tables[row, 0]:.1f}: ten or more?", correction="holm")

# %%
# Each part is decided by itself, with corrections over its own features. The legend of each says over how many.

for part in result.summary(correction="holm").values():
    print(part[0], end="\n\n")

# %%
# Why not one row of 67 features?
# -------------------------------
#
# That is how the samples are kept. But a share of it is a share of pixels, whatever the columns do.

for name, part in result.items():
    marks = part.significance_map(correction="holm")
    print(f"{name}: {(marks != 0).sum()} of {marks.size} features decided")
together = np.concatenate([part.significance_map(correction="holm").ravel() for part in result.values()])
print(f"together: {(together != 0).mean():.0%}")
