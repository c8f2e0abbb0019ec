"""Train the model, on one thread, and write its weights in half precision."""

import argparse
import time

import numpy as np
import torch
from torch.nn import functional

from benchmarks.key_values import ASK, BOS, FILE, KEYS, STOP, VALUES, untrained

MOST_FACTS = 8
QUESTIONS = 4  # of each prompt in training: one alone teaches ten times more slowly
FIRST_KEY, FIRST_VALUE = 3, 3 + len(KEYS)


def batch(
    rng: np.random.Generator, n_rows: int, n_facts: int, n_questions: int = 1, *, absent: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Prompts (n_rows, tokens) and the answers (n_rows, questions); of an absent key any value is as good as another.

    The answer to each question is behind it, so that the last tokens are ``ask k v ask k v``.
    """
    keys = rng.permuted(np.tile(np.arange(len(KEYS)), (n_rows, 1)), axis=1)
    values = rng.integers(0, len(VALUES), (n_rows, n_facts))
    facts = keys[:, :n_facts].copy()
    if n_facts > 1:  # a quarter of the rows say one fact again
        rows = np.flatnonzero(rng.random(n_rows) < 0.25)
        place = np.argsort(rng.random((len(rows), n_facts)), axis=1)
        facts[rows, place[:, 1]], values[rows, place[:, 1]] = facts[rows, place[:, 0]], values[rows, place[:, 0]]
    asked = keys[:, n_facts : n_facts + n_questions]
    answers = rng.integers(0, len(VALUES), asked.shape)
    if not absent and n_facts:
        chosen = rng.integers(0, n_facts, asked.shape)
        asked, answers = np.take_along_axis(facts, chosen, 1), np.take_along_axis(values, chosen, 1)
    three = np.stack([facts + FIRST_KEY, values + FIRST_VALUE, np.full_like(facts, STOP)], axis=2)
    questions = np.stack([np.full_like(asked, ASK), asked + FIRST_KEY, answers + FIRST_VALUE], axis=2)
    parts = [np.full((n_rows, 1), BOS), three.reshape(n_rows, -1), questions.reshape(n_rows, -1)]
    return np.concatenate(parts, axis=1), answers + FIRST_VALUE


def trained(steps: int, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = untrained().train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1, (step + 1) / 100) * min(1, max(0.02, 2 * (1 - step / steps)))
    )
    for step in range(steps):
        most = min(MOST_FACTS, 1 + step // 50)  # few facts first; a slower curriculum teaches places, not keys
        n_facts = int(rng.integers(int(step < 1000), most + 1))
        tokens, answers = batch(rng, 64, n_facts, QUESTIONS, absent=rng.random() < 0.3)
        logits = model(torch.from_numpy(tokens)).logits[:, -3 * QUESTIONS + 1 :: 3]
        loss = functional.cross_entropy(logits.reshape(answers.size, -1), torch.from_numpy(answers.ravel()))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 200 == 199:
            print(f"step {step + 1}, up to {most} facts: accuracy with 8 {accuracy(model):.3f}", flush=True)
    return model.eval()


def accuracy(model: torch.nn.Module, n: int = 2000) -> float:
    tokens, answers = batch(np.random.default_rng(10**6), n, MOST_FACTS, absent=False)
    with torch.no_grad():
        found = model(torch.from_numpy(tokens)).logits[:, -2].argmax(1)
    return float((found.numpy() == answers[:, 0]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default=str(FILE))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    clock = time.process_time()
    model = trained(asked.steps, asked.seed)
    print(f"accuracy with 8 facts {accuracy(model):.4f}, {time.process_time() - clock:.0f} CPU s")
    state = {name: value.half().numpy() for name, value in model.state_dict().items() if name != "lm_head.weight"}
    np.savez_compressed(asked.out, **state)


if __name__ == "__main__":
    main()
