"""
A photograph that the network is unsure of
==========================================

The picture shows Chelsea the cat in close-up. The network says "tiger cat" with probability 0.39. What does noise do to
the answer? And what is left of the explanation after a correction for 50,176 tests at once?
"""

# %%
# Check the premise first
# -----------------------
#
# A statement about the explanation under noise is of little use if the noise changes the prediction. The explainers of
# metfa return the model's scores with the maps, so the result holds the network's answer to each noisy copy.

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from PIL import Image
from skimage import data

import metfa

loaded = metfa.models.load("efficientnet-lite0")
images = loaded.preprocess(Image.fromarray(data.chelsea()))[None]
explainer = metfa.explainers.Gradient(loaded.module)
noise = metfa.noise.Uniform(0.1, bounds=(0, 1))
sample = metfa.explain(explainer, images, noise=noise, n_samples=50, rng=0)

answers = Counter(loaded.class_names[int(best)] for best in sample.predictions[:, 0])
print(f"clean: {loaded.class_names[sample.target[0]]}; under noise: {answers.most_common(3)}")
print(f"flip rate: {sample.flip_rate[0]:.0%}")

# %%
# The network still sees cats, but for most noisy copies it names another cat. On the clean picture the two classes have
# nearly equal scores. A noise of only 0.01, less than three of 255 grey levels, changes their order. So "why tiger
# cat?" is a poor question: the clean answer is an accident. The target stays the same nevertheless, and the maps below
# say what speaks for *tiger cat*. One can ask for the other class with the same noise and compare the verdicts.

probability = loaded.module(images).softmax(dim=1)[0]
for best in probability.argsort(descending=True)[:3]:
    print(f"{loaded.class_names[best]}: {probability[best]:.2f}")

egyptian = loaded.class_names.index("Egyptian cat")
other = metfa.explain(explainer, images, egyptian, noise=noise, n_samples=50, rng=0)
marks, other_marks = sample.significance_map()[0], other.significance_map()[0]
print(f"important to tiger cat: {np.sum(marks == 1)} pixels, to Egyptian cat: {np.sum(other_marks == 1)}")
print(f"important to both: {np.sum((marks == 1) & (other_marks == 1))}")

# %%
# One sample, five answers
# ------------------------
#
# A correction only reads the sample in another way; the model is not asked again. Without a correction, each pixel is
# tested at level 0.05 a side, as in the paper. If all medians lay at the threshold, this would still mark 3,257 pixels
# on average. The other rules hold for all pixels, and for each of the two statements. "bonferroni" and "holm" bound the
# probability that any pixel is called important falsely. "bh" and "by" bound the expected share of false ones among the
# pixels called important ("bh" under positive dependence between pixels, "by" under any dependence). The same holds for
# "unimportant".

colours = metfa.plot.PALETTES["colourblind"]
three = ListedColormap([colours.unimportant, colours.undecided, colours.important])
picture = np.moveaxis(sample.inputs[0], 0, -1)


def draw(sample, title):
    fig, axes = plt.subplots(2, 3, figsize=(8.4, 6.6), layout="constrained")
    axes[0, 0].imshow(picture)
    axes[0, 0].set_title("picture")
    for ax, correction in zip(axes.flat[1:], (None, "bh", "by", "holm", "bonferroni"), strict=True):
        marks = sample.significance_map(correction=correction)[0]
        ax.imshow(marks, cmap=three, vmin=-1, vmax=1, interpolation="nearest")
        ax.set_title(correction or "uncorrected")
        ax.set_xlabel(f"important: {np.sum(marks == 1)} pixels, undecided: {np.mean(marks == 0):.1%}", fontsize="small")
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
    fig.suptitle(title)


draw(sample, "50 samples: important amber, unimportant dark blue, undecided grey")
plt.show()

# %%
# More samples
# ------------
#
# "Undecided" is not "unimportant": it is a lack of evidence, and more samples give more evidence. We have looked at
# these fifty, so they must not be a part of a sample whose number we choose now. A new call takes a hundred others,
# with another seed. (Joined by ``concat``, all would be decided by e-values, which allow looks and need more samples.)

more = metfa.explain(explainer, images, noise=noise, n_samples=100, rng=1)
draw(more, "100 other samples")
plt.show()

# sphinx_gallery_thumbnail_number = 1
