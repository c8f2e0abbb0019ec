"""Train the text classifier that metfa ships: a bidirectional LSTM on sentences with a label.

    python examples/train_text_classifier.py --data FOLDER --out model.npz

FOLDER holds train.csv and test.csv with columns ``label`` (0, 1, ...) and ``text``. The default settings were chosen on
a tenth of train.csv of the sentiment data; test.csv is used once, at the end. With one thread and one seed, the same
machine writes the same file again. ``metfa.text.load_model("model.npz")`` loads it.
"""

import argparse
import csv
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch import nn

from metfa.text.models import BiLSTM, TrainedBiLSTM, load_model, save_model, tokens_of
from metfa.text.models.bilstm import PADDING, UNKNOWN


def read_rows(path, n_classes):
    """Texts and labels of a CSV file; ends with a message if a line is wrong."""
    if not path.is_file():
        raise SystemExit(f"no such file: {path}")
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        if not {"label", "text"} <= set(reader.fieldnames or ()):
            raise SystemExit(f"{path} must have columns label and text, it has {reader.fieldnames}")
        rows = [(reader.line_num, row["text"] or "", row["label"] or "") for row in reader]
    for line, text, label in rows:
        if not text.strip():
            raise SystemExit(f"{path}, line {line}: the text is empty")
        if not label.isdecimal() or int(label) >= n_classes:
            raise SystemExit(
                f"{path}, line {line}: label {label!r} is not one of 0 .. {n_classes - 1} (see --class-names)"
            )
    if not rows:
        raise SystemExit(f"{path} has no lines")
    return [text for _, text, _ in rows], np.array([int(label) for *_, label in rows])


def vocabulary_of(texts, min_count):
    """Tokens that occur often enough, the most frequent first."""
    counts = Counter(token for text in texts for token in tokens_of(text)[0])
    return tuple(sorted((t for t in counts if counts[t] >= min_count), key=lambda token: (-counts[token], token)))


def accuracy(model, texts, labels):
    """Share of texts that the model labels correctly."""
    return float((model(texts).argmax(axis=1) == labels).mean())


def train(texts, labels, class_names, settings):
    """The model whose weights are the moving average over the last steps."""
    rng = np.random.default_rng(settings.seed)
    torch.manual_seed(settings.seed)
    vocabulary = vocabulary_of(texts, settings.min_count)
    module = BiLSTM(len(vocabulary) + 2, len(class_names), dropout=settings.dropout)
    with torch.no_grad():
        module.embedding.weight.mul_(0.03)  # torch's default vectors have length 8, too large beside what is learned
    averaged = torch.optim.swa_utils.AveragedModel(
        module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(settings.averaging)
    )
    model = TrainedBiLSTM(averaged.module, vocabulary, class_names)
    optimiser = torch.optim.AdamW(module.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    ids = [torch.tensor(model.tokenize(text)[0]) for text in texts]
    targets = torch.from_numpy(labels)
    module.train()
    for epoch in range(settings.epochs):
        start, total = time.perf_counter(), 0.0
        for batch in np.array_split(rng.permutation(len(ids)), max(len(ids) // settings.batch_size, 1)):
            tokens = nn.utils.rnn.pad_sequence([ids[row] for row in batch], batch_first=True, padding_value=PADDING)
            hidden = (torch.rand(tokens.shape) < settings.word_dropout) & (tokens != PADDING)
            loss = nn.functional.cross_entropy(module(tokens.masked_fill(hidden, UNKNOWN)), targets[batch])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimiser.step()
            averaged.update_parameters(module)
            total += loss.item() * len(batch)
        print(f"epoch {epoch + 1}: loss {total / len(ids):.3f}, {time.perf_counter() - start:.1f} s", flush=True)
    averaged.eval()
    return model


def main():
    """Read, train, save, and test the saved model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with train.csv and test.csv")
    parser.add_argument("--out", type=Path, required=True, help="file to write, .npz")
    parser.add_argument("--class-names", nargs="+", default=["negative", "positive"], help="of labels 0, 1, ...")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--weight-decay", type=float, default=0.3)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--word-dropout", type=float, default=0.4, help="share of words read as unknown in training")
    parser.add_argument("--averaging", type=float, default=0.99, help="decay of the moving average of the weights")
    parser.add_argument("--min-count", type=int, default=2, help="least number of occurrences of a known word")
    parser.add_argument("--seed", type=int, default=0)
    settings = parser.parse_args()
    torch.set_num_threads(1)  # with more, recurrent networks are slower, and far slower beside other processes
    (texts, labels), tested = (
        read_rows(settings.data / name, len(settings.class_names)) for name in ("train.csv", "test.csv")
    )
    model = train(texts, labels, tuple(settings.class_names), settings)
    save_model(model, settings.out, overwrite=True)
    saved = load_model(settings.out)
    test = accuracy(saved, *tested)
    size = settings.out.stat().st_size
    print(f"{settings.out}: {size:,} bytes, {len(saved.vocabulary):,} words")
    print(f"accuracy on test.csv: {test:.3f}")


if __name__ == "__main__":
    main()
