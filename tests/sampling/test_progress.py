"""What a long call shows: a bar that moves within a map, an estimate before a long run, and Ctrl-C that is heard."""

import _thread
import logging
import re
import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

import metfa
from metfa.explainers import IGOS, LIME, MASK, RISE, Gradient, ScoreCAM, SmoothGrad
from metfa.sampling import progress

IMAGE = torch.rand(1, 3, 12, 16, generator=torch.Generator().manual_seed(0))
SQUARES = np.arange(12)[:, None] // 4 * 4 + np.arange(16)[None] // 4
SETTINGS = {"noise": metfa.noise.Uniform(0.1), "n_samples": 3, "batch_size": 1, "rng": 0}


def net():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    return nn.Sequential(*layers).eval()


MADE = {
    "masks": lambda called: RISE(called, n_masks=40, grid=4),
    "perturbations": lambda called: LIME(called, n_perturbations=40, segmentation=SQUARES),
    "channels": ScoreCAM,
    "passes": lambda called: IGOS(called, n_iterations=2, n_steps=4, grid=4),
    "iterations": lambda called: MASK(called, n_iterations=4, grid=4),
    "perturbation": lambda called: SmoothGrad(called, n_perturbations=8),
}


class Bar:
    """What is shown, without tqdm."""

    def __init__(self, total, done, *, unit, **_):
        self.total, self.n, self.unit, self.shares, self.said = total, done, unit, [], []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def update(self, n):
        self.n += n
        self.refresh()

    def refresh(self):
        self.shares.append(self.n / self.total)

    def set_postfix_str(self, text):
        pass

    def write(self, text, file):
        self.said.append(text)


@pytest.fixture
def bars(monkeypatch):
    made = []

    def bar(*given, **settings):
        made.append(Bar(*given, **settings))
        return made[-1]

    monkeypatch.setattr(progress, "progress_bar", bar)
    monkeypatch.setattr(progress, "check_bar", lambda extra: None)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    return made


@pytest.fixture
def logged():
    texts, log = [], logging.getLogger("metfa")
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield texts
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)


@pytest.mark.parametrize("noun", MADE)
@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
def test_the_bar_moves_within_a_map(noun, bars):
    called = metfa.Called(net(), batch_size=4)
    metfa.explain(MADE[noun](called), IMAGE, 1, **SETTINGS)
    (bar,) = bars
    assert bar.unit == noun.removesuffix("s")
    assert bar.n == bar.total
    assert len(bar.shares) > 8  # with three maps
    assert max(np.diff([0, *bar.shares])) < 0.5


@pytest.mark.parametrize("noun", ["masks", "channels"])
def test_the_bar_is_full_only_at_the_end(noun, bars):
    """Though the clean map and the first look ask too, and all maps come in one batch."""
    metfa.explain(MADE[noun](metfa.Called(net(), batch_size=4)), IMAGE, 1, **{**SETTINGS, "batch_size": 10})
    *before, last = bars[0].shares
    assert max(before) < 1
    assert last == 1


def test_single_passes_are_counted_as_maps(bars):
    metfa.explain(Gradient(net()), IMAGE, 1, **SETTINGS)
    assert (bars[0].unit, bars[0].n, bars[0].total) == ("map", 3, 3)


def test_a_resumed_run_begins_where_it_was(bars, tmp_path):
    class Stops(RISE):
        def __call__(self, inputs, target=None, *, rngs=None):
            if next(calls) > 2:
                raise KeyboardInterrupt
            return super().__call__(inputs, target, rngs=rngs)

    given = {**SETTINGS, "run": metfa.Run(store=tmp_path / "store")}
    calls = iter(range(9))
    with pytest.raises(KeyboardInterrupt):
        metfa.explain(Stops(metfa.Called(net()), n_masks=40, grid=4), IMAGE, 1, **given)
    calls = iter([0] * 9)
    metfa.explain(Stops(metfa.Called(net()), n_masks=40, grid=4), IMAGE, 1, **given)
    assert bars[1].shares[0] >= 2 / 3
    assert bars[1].n == bars[1].total
    metfa.explain(Stops(metfa.Called(net()), n_masks=40, grid=4), IMAGE, 1, **given)
    assert bars[2].n == bars[2].total  # it is finished


@pytest.mark.parametrize(
    ("explainer", "expected"),
    [
        (lambda: RISE(net(), n_masks=40, grid=4), r"about \d+ (s|min|h); RISE, 3 × 40 masks"),
        (lambda: ScoreCAM(net()), r"about \d+ (s|min|h); ScoreCAM, 3 × \d channels"),
        (lambda: Gradient(net()), r"about \d+ (s|min|h); Gradient, 3 maps"),
    ],
)
def test_a_long_run_is_announced_once(explainer, expected, bars, monkeypatch, logged):
    monkeypatch.setattr(progress, "FIRST", 0.0)
    monkeypatch.setattr(progress, "LONG", 0.0)
    metfa.explain(explainer(), IMAGE, 1, **SETTINGS, run=metfa.Run(progress=True))
    (said,) = bars[0].said
    assert re.fullmatch(expected, said)
    assert logged == [said]


@pytest.mark.parametrize(("seconds", "words"), [(42.3, "42 s"), (60, "1 min"), (355, "6 min"), (7200, "2 h")])
def test_times_in_words(seconds, words):
    assert progress._in_words(seconds) == words


def test_a_short_run_is_not_announced(bars, logged):
    metfa.explain(MADE["masks"](net()), IMAGE, 1, **SETTINGS, run=metfa.Run(progress=True))
    assert bars[0].said == logged == []


def test_a_comparison_counts_the_forwards_of_both(bars):
    metfa.compare(MADE["masks"](net()), MADE["masks"](net()), IMAGE, 1, **SETTINGS)
    assert bars[0].unit == "mask"
    assert bars[0].n == bars[0].total > 2 * 3 * 40


def test_ctrl_c_is_answered_within_a_second(interrupts_heard):
    """Also within a map of minutes."""
    explainer = RISE(metfa.Called(net(), batch_size=4), n_masks=200_000, grid=4)
    pressed = []

    def press():
        pressed.append(time.monotonic())
        _thread.interrupt_main()

    timer = threading.Timer(0.3, press)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        metfa.explain(explainer, IMAGE.repeat(1, 1, 4, 4), 1, **SETTINGS)
    assert time.monotonic() - pressed[0] < 1
