"""Which sources caused an answer: metfa's marks beside ContextCite's numbers, at the same number of forwards.

Two kinds of scorer know the truth. *Synthetic*: ten sources and normal noise, fresh in each forward: a sum (3 and 1.5),
an OR and an AND of two (4). *Key-value*: the decoder of `benchmarks.key_values` with eight facts, of which one, or one
given twice, answers the question; the score is the logit of the answer.

- *metfa*: `metfa.text.explain_answer` with its defaults: pilot and further forwards are counted. A source counts as
  found where its mark is "adds more than δ in some context" (Holm, .05).
- *ContextCite*: its lasso (α .01 on standardised choices of sources, each kept with probability ½), from as many
  forwards. A source counts as found where its number is above 0, or above log 2.

Printed are recall of the sources that matter and the share of prompts with any false mark; then how many forwards it
takes until all sources are decided (e-values, Bonferroni), and how many of the others stay undecided. No time is
measured.
"""

import argparse
import json
import math

import numpy as np
import torch
from sklearn.linear_model import Lasso

import metfa
from benchmarks.key_values import decoder, fact, question, tokenizer
from metfa.text import AnswerScorer, explain_answer

LOG2, TINY = math.log(2), 1e-9
OTHER = 3  # forwards of metfa that are no samples and no pilot: the whole prompt, and two looks
PILOT, LARGE_PILOT, MANY = 24, 48, 200  # the default, and what is worth it with so many forwards
CAP = 424
SYNTHETIC = {
    "sum of 3 and 1.5": lambda m: 3.0 * m[:, 0] + 1.5 * m[:, 1],
    "OR of two": lambda m: 4.0 * (m[:, 0] | m[:, 1]),
    "AND of two": lambda m: 4.0 * (m[:, 0] & m[:, 1]),
}


class Prompt:
    """Scores of choices of sources, the sources, and which of them matter."""

    def __init__(self, function, sources, matter, noise=0.0, seed=0):
        self.function, self.sources, self.matter = function, sources, np.array(matter)
        self.noise, self.rng = noise, np.random.default_rng((seed, 1))

    def of_masks(self, masks):
        return self.function(masks) + self.noise * self.rng.standard_normal(len(masks))

    def __call__(self, rows):
        places = {source: place for place, source in enumerate(self.sources)}
        masks = np.zeros((len(rows), len(self.sources)), bool)
        for row, kept in enumerate(rows):
            masks[row, [places[source] for source in kept]] = True
        return self.of_masks(masks)


def synthetic(name, noise, seed):
    return Prompt(SYNTHETIC[name], [f"source {number}" for number in range(10)], [1, 1] + [0] * 8, noise, seed)


def key_values(copies, seed, network, words):
    """All 256 choices are scored once, by the scorer itself, and looked up afterwards."""
    rng = np.random.default_rng(seed)
    keys, values = rng.permutation(16)[: 9 - copies], rng.integers(0, 16, 9 - copies)
    facts = [fact(*pair) for pair in zip(keys, values, strict=True)] + [fact(keys[0], values[0])] * (copies - 1)
    order = rng.permutation(8)
    facts, matter = [facts[place] for place in order], [facts[place] == facts[0] for place in order]
    scorer = AnswerScorer(
        network, words, template=f"<bos> {{sources}} {question(keys[0])}", separator=" ", answers=f"v{values[0]}",
        batch_size=256,
    )  # fmt: skip
    choices = (np.arange(256)[:, None] >> np.arange(8)) % 2 == 1
    table = scorer([[one for one, on in zip(facts, choice, strict=True) if on] for choice in choices])[:, 0]
    sources = [f"{place}: {one}" for place, one in enumerate(facts)]
    return Prompt(lambda masks: table[masks @ (1 << np.arange(8))], sources, matter)


def of_metfa(prompt, forwards, delta, seed):
    pilot = LARGE_PILOT if forwards > MANY else PILOT
    n = forwards - pilot - OTHER
    settings = {"delta": delta, "pilot": pilot, "batch_size": n, "rng": seed}
    return explain_answer(prompt, prompt.sources, n_samples=n, **settings).significance_map()[0] == 1


def of_context_cite(prompt, forwards, seed):
    masks = np.random.default_rng((seed, 2)).random((forwards, len(prompt.sources))) < 0.5
    mean, deviation = masks.mean(axis=0), masks.std(axis=0)
    deviation[deviation == 0] = 1.0
    fit = Lasso(alpha=0.01).fit((masks - mean) / deviation, prompt.of_masks(masks))
    return fit.coef_ / deviation


def beside(prompts, forwards, delta):
    found = {"metfa": [], "ContextCite > 0": [], "ContextCite > log 2": []}
    for seed, prompt in enumerate(prompts):
        numbers = of_context_cite(prompt, forwards, seed)
        found["metfa"].append(of_metfa(prompt, forwards, delta, seed))
        found["ContextCite > 0"].append(numbers > 0)
        found["ContextCite > log 2"].append(numbers > LOG2)
    matter = np.array([prompt.matter for prompt in prompts], bool)
    return {
        name: {
            "recall": round(float(np.mean([(m & t).sum() / t.sum() for m, t in zip(marks, matter, strict=True)])), 3),
            "prompts with a false mark": round(float((np.array(marks) & ~matter).any(axis=1).mean()), 3),
        }
        for name, marks in found.items()
    }


def until_decided(prompts):
    forwards, recall, false, undecided = [], [], [], []
    for seed, prompt in enumerate(prompts):
        rule = metfa.Until(undecided=0.0, correction="bonferroni", max_samples=CAP - PILOT - OTHER)
        sample = explain_answer(prompt, prompt.sources, delta=LOG2, n_samples=rule, rng=seed)
        marks, matter = sample.significance_map()[0], np.array(prompt.matter, bool)
        forwards.append(sample.provenance["prompts"]["scored"])
        recall.append((marks[matter] == 1).mean())
        false.append((marks[~matter] == 1).any())
        undecided.append((marks[~matter] == 0).sum())
    return {
        "median forwards": float(np.median(forwards)),
        "recall": round(float(np.mean(recall)), 3),
        "prompts with a false mark": round(float(np.mean(false)), 3),
        "others undecided": round(float(np.mean(undecided)), 2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=60)
    n = parser.parse_args().prompts
    torch.set_num_threads(1)
    network, words = decoder(), tokenizer()
    for copies in (1, 2):
        prompts = [key_values(copies, seed, network, words) for seed in range(n)]
        for forwards in (72, 288):
            print(f"key-value, given {copies}x, {forwards}", json.dumps(beside(prompts, forwards, LOG2)), flush=True)
        print(f"key-value, given {copies}x, until decided", json.dumps(until_decided(prompts)), flush=True)
    for name in SYNTHETIC:
        for noise, forwards, delta in ((0.5, 110, TINY), (0.5, 110, LOG2), (1.5, 66, TINY), (1.5, 264, TINY)):
            prompts = [synthetic(name, noise, seed) for seed in range(n)]
            said = f"{name}, noise {noise}, {forwards}, delta {'log 2' if delta > TINY else 'near 0'}"
            print(said, json.dumps(beside(prompts, forwards, delta)), flush=True)
