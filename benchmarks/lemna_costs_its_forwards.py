"""LEMNA with 2000 copies of a sentence of 60 words: against its bare forwards, and its memory.

The network is a bidirectional LSTM (8,000 words, 100 numbers a word, 64 units a side, random weights) on one thread; it
cuts words at blanks. The bare forwards are for the same texts in the same batches, made before the clock starts.
"""

import argparse

import numpy as np
import torch

from benchmarks.measuring import compare, peak_during
from metfa.text import LEMNA

WORDS, NUMBERS, UNITS, LENGTH = 8000, 100, 64, 60


class BiLSTM(torch.nn.Module):
    """List of texts "w17 w3 ..." -> probabilities of two classes."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS + 1, NUMBERS, padding_idx=0)
        self.lstm = torch.nn.LSTM(NUMBERS, UNITS, bidirectional=True, batch_first=True)
        self.dense = torch.nn.Sequential(torch.nn.Linear(2 * UNITS, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))

    def forward(self, texts):
        rows = [torch.tensor([int(word[1:]) for word in text.split()] or [0]) for text in texts]
        lengths = torch.tensor([len(row) for row in rows])
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            self.embedding(padded), lengths, batch_first=True, enforce_sorted=False
        )
        last = self.lstm(packed)[1][0]
        return 8 * self.dense(torch.cat([last[0], last[1]], dim=1)).softmax(dim=1) - 3.5  # a wide spread of scores


class Recorder:
    """A model that keeps the batches that it gets."""

    def __init__(self, model):
        self.model, self.batches = model, []

    def __call__(self, texts):
        self.batches.append(texts)
        return self.model(texts)


def main(n: int, rounds: int, components: list[int]) -> None:
    torch.manual_seed(0)
    network = BiLSTM().eval()
    one_score = lambda texts: network(texts)[:, 0]  # noqa: E731
    text = " ".join(f"w{index}" for index in np.random.default_rng(0).integers(1, WORDS + 1, LENGTH))
    recorder = Recorder(one_score)
    LEMNA(recorder, n_perturbations=n, rng=0)([text])

    def forwards() -> None:
        with torch.no_grad():
            for batch in recorder.batches:
                one_score(batch)

    for n_components in components:
        explainer = LEMNA(one_score, n_perturbations=n, n_components=n_components, rng=0)
        compare(
            (f"LEMNA, {n} copies, {n_components} components", "bare forwards of the same texts"),
            lambda explainer=explainer: explainer([text]),
            forwards,
            rounds=rounds, target=2 if n_components <= 3 else None,
        )  # fmt: skip
    for copies in (n // 4, n, 4 * n):
        explainer = LEMNA(one_score, n_perturbations=copies, rng=0)
        peak = peak_during(lambda explainer=explainer: explainer([text]))
        print(f"peak memory with {copies} copies: {peak:.0f} MiB", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-perturbations", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--components", type=int, nargs="+", default=[1, 3, 6])
    options = parser.parse_args()
    torch.set_num_threads(1)  # on a busy machine, recurrent networks were much slower with two threads
    print(f"torch {torch.__version__}, numpy {np.__version__}")
    main(options.n_perturbations, options.rounds, options.components)
