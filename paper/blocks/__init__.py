"""Parts of the pages that are made from the tables in paper/results: tables, and sentences with what they show.

Each says how many of the planned units it is made from, also where it is none.
"""

from collections.abc import Callable
from pathlib import Path

from paper.blocks.attacks import attacks, budgets, digits, signs
from paper.blocks.images import alpha, faithfulness, flips, gradient, others, smoothgrad
from paper.blocks.laws import laws
from paper.blocks.scenes import context, planted
from paper.blocks.texts import penalty, text_faithfulness, text_stability, toxic_spans
from paper.cells import Part

__all__ = ["BLOCKS"]

BLOCKS: dict[str, dict[str, Callable[[Path], Part]]] = {  # by page
    "RESULTS.md": {
        "flips": flips, "gradient": gradient, "others": others, "smoothgrad": smoothgrad, "alpha": alpha,
        "faithfulness": faithfulness, "laws": laws,
    },
    "TEXT_RESULTS.md": {
        "penalty": penalty, "text_stability": text_stability, "text_faithfulness": text_faithfulness,
        "toxic_spans": toxic_spans,
    },
    "SEGMENTATION_RESULTS.md": {"planted": planted, "context": context},
    "ATTACK_RESULTS.md": {"attacks": attacks, "signs": signs, "budgets": budgets, "digits": digits},
}  # fmt: skip
