"""Which units a tier has, training by training, so that a part of them is a smaller result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.truth import digits, explainers, images, tables, texts
from benchmarks.truth.aggregate import SIX
from benchmarks.truth.task import Task
from benchmarks.truth.units import Unit

__all__ = ["OF", "TIERS", "USUAL", "is_usual"]

STD_OF_IMAGES, STD_OF_TABLES, SHARE_OF_WORDS = 0.1, 0.2, 0.3
USUAL = {
    "images": ("Gaussian", STD_OF_IMAGES), "tables": ("Gaussian", STD_OF_TABLES), "texts": ("synonyms", SHARE_OF_WORDS),
}  # fmt: skip
RADII = (0.02, 0.05, 0.1, 0.2, 0.4)

PLANTED = [images.blind("LIN"), images.blind("XOR"), images.nothing_learned()]
TABLES = [*tables.tables(0.0, 0.75), *tables.tables(0.0, names=("suppressor",))]
PIECEWISE = tables.tables(0.0, names=("piecewise linear",))
ONCE = ("conditional SHAP",)  # in the quick tier: explainers of tables that take long
ALL_TABLES = [
    *tables.tables(0.0, 0.75, 0.99),
    *tables.tables(0.0, names=("suppressor", "piecewise linear")),
]


def _units(
    tasks: Iterable[Task],
    training: int,
    *,
    inputs: int,
    sizes: tuple[int, ...],
    names: tuple[str, ...] = (),
    noises: tuple[tuple[str, float], ...] = (),
) -> list[Unit]:
    return [
        Unit(task, name, training, kind, std, inputs, sizes)
        for task in tasks
        for kind, std in noises or (USUAL[task.of],)
        for name in names or explainers.OF[task.of]
    ]


def quick() -> list[Unit]:
    """Two trainings of images and tables; one of what takes longer, so that five minutes of a core do."""
    found, usual = [], tuple(name for name in explainers.OF_TABLES if name not in ONCE)
    for training in range(2):
        found += _units([*images.IMAGES, *PLANTED], training, inputs=25, sizes=(20, 50))
        found += _units(TABLES, training, inputs=15, sizes=(20, 50), names=usual)
    found += _units(digits.DIGITS, 0, inputs=25, sizes=(20, 50))
    found += _units(TABLES, 0, inputs=15, sizes=(20, 50), names=ONCE)
    found += _units(PIECEWISE, 0, inputs=15, sizes=(20, 50))
    return found + _units(texts.TEXTS, 0, inputs=5, sizes=(20, 50))


def full() -> list[Unit]:
    """Five trainings of everything; then three of the six tasks at every radius of both noises, with 50 samples."""
    sizes, found = (10, 20, 50, 100, 200), []
    for training in range(5):
        found += _units([*images.IMAGES, *images.RIGID, *PLANTED, *digits.DIGITS], training, inputs=100, sizes=sizes)
        found += _units(ALL_TABLES, training, inputs=50, sizes=sizes)
        found += _units(texts.TEXTS, training, inputs=20, sizes=sizes)
        found += _units([*images.LINEAR, *images.CONVOLUTIONAL], training, inputs=100, sizes=sizes)
    others = [(kind, std) for kind in ("Gaussian", "uniform") for std in RADII]
    others.remove(USUAL["images"])
    for training in range(3):
        found += _units(images.IMAGES, training, inputs=100, sizes=(50,), noises=tuple(others))
    return found


TIERS: dict[str, Callable[[], list[Unit]]] = {"quick": quick, "full": full}
OF = {unit.task.name: unit.task.of for tier in TIERS.values() for unit in tier()} | {SIX: "images"}


def is_usual(row: dict[str, Any]) -> bool:
    """Whether a row of a table is about the noise that other tables are about."""
    return (row["kind"], row["std"]) == USUAL[OF[row["task"]]]
