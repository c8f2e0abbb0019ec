"""Parts of pages made from the library itself at every build: command line options, tables of N, and Markdown files."""

from __future__ import annotations

import enum
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from typer.models import OptionInfo

from metfa import stats

PIXELS = 224 * 224


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows) + "\n"


# -- tables of N


def smallest_n() -> str:
    """Smallest N for a level: each kind of statement a row."""
    levels = (0.1, 0.05, 0.01, 0.001)
    kinds: list[tuple[str, Callable[[float], int]]] = [
        ("significance map, uncorrected", lambda a: stats.min_samples(a, "greater")),
        ("interval, smoothed map", lambda a: stats.min_samples(a)),
    ]
    kinds += [
        (
            f"Bonferroni or Holm, {features:,} features",
            partial(stats.min_samples, alternative="greater", n_tests=features),
        )
        for features in (30, 1000, PIXELS)
    ]
    header = ["statement", *(f"α = {level:g}" for level in levels)]
    return _csv([header, *([name, *(smallest(level) for level in levels)] for name, smallest in kinds)])


def _least_count(n: int, alpha: float) -> int:
    """Smallest count of samples above the threshold that makes a feature important, found by the test itself."""
    counts = np.arange(n + 1)
    samples = np.where(np.arange(n)[:, None] < counts, 1.0, -1.0)
    pvalues = stats.sign_test(samples, 0.0, alternative="greater").pvalue
    return int(counts[pvalues <= alpha].min(initial=n + 1))


def by_n() -> str:
    """Ranks, coverage, least count and expected false marks for some N at alpha 0.05 and confidence level 0.95."""
    rows: list[Sequence[Any]] = [
        ["N", "ranks", "averaged", "exact coverage", "important from", "unimportant to", "false marks"]
    ]
    for n in (5, 6, 8, 10, 15, 20, 30, 50, 70, 100, 200, 500, 1000):
        least = _least_count(n, 0.05)
        marks = f"{stats.expected_false_marks(n, 0.05, PIXELS):,.0f}"
        if n < stats.min_samples(0.05):
            rows.append([n, "none", "–", "–", least, n - least, marks])
            continue
        ranks = stats.median_ranks(n)
        averaged = ranks.last - ranks.first + 1
        level = f"{ranks.confidence_level:.5f}"
        rows.append([n, f"{ranks.low}, {ranks.high}", averaged, level, least, n - least, marks])
    return _csv(rows)


# -- command line


def command_line() -> str:
    """Every command with its arguments and options, from the annotations that the command line is built from."""
    from metfa.cli.app import app

    parts = []
    for name, callback in _commands(app):
        hints = typing.get_type_hints(inspect.unwrap(callback), include_extras=True)
        parameters = inspect.signature(callback).parameters
        rows = [_option(key, hints[key], parameter) for key, parameter in parameters.items()]
        arguments = " ".join(label for label, _, default in rows if default == "required")
        title = f"metfa {name}"
        table = _csv([(f"``{label}``", text, default) for label, text, default in rows])
        parts.append(
            f"{title}\n{'-' * len(title)}\n\n{inspect.getdoc(callback)}\n\n"
            f".. code-block:: console\n\n   $ {' '.join(filter(None, (title, arguments)))} [OPTIONS]\n\n"
            ".. csv-table::\n   :widths: 30 52 18\n   :header: option, meaning, default\n\n"
            + "".join(f"   {line}\n" for line in table.splitlines())
        )
    return "\n\n".join(parts) + "\n"


def _commands(app: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Names and functions of the commands, also of those that are grouped under a name."""
    for command in app.registered_commands:
        yield f"{before}{command.name or command.callback.__name__}", command.callback
    for group in app.registered_groups:
        yield from _commands(group.typer_instance, f"{before}{group.name} ")


def _option(key: str, hint: Any, parameter: inspect.Parameter) -> tuple[str, str, str]:
    kind, about = typing.get_args(hint)[:2]
    text = re.sub(r"\\+\[", "[", about.help or "")
    names = (about.default, *(about.param_decls or ()))  # in an annotation, typer takes the first name as the default
    declared = [name for name in names if isinstance(name, str) and name.startswith("-")]
    label = ", ".join(declared or [f"--{key.replace('_', '-')}"])
    if parameter.default is inspect.Parameter.empty:
        plural = "..." if typing.get_origin(kind) is list else ""
        value = f"{(about.metavar or key.rstrip('s')).upper()}{plural}"
        return f"{label} {value}" if isinstance(about, OptionInfo) else value, text, "required"
    default = parameter.default
    if isinstance(default, enum.Enum):
        text = f"{text} One of {', '.join(member.value for member in type(default))}."
        default = default.value
    return label, text, "" if default in (None, "") else "off" if default is False else f"``{default}``"


# -- Markdown files of the repository


def rst_of(markdown: str) -> str:
    """Markdown as the repository's own files use it (headings, lists, fences, code, bold, links) in RST."""
    lines, fence = [], False
    for line in markdown.splitlines():
        if line.startswith("```"):
            fence = not fence
            lines += ["", f".. code-block:: {line[3:] or 'text'}", ""] if fence else [""]
        elif fence:
            lines.append(f"   {line}")
        elif heading := re.match(r"(#+) (.*)", line):
            text = _inline(heading[2].strip("[]"))
            lines += [text, "=-~^"[len(heading[1]) - 1] * len(text), ""]
        else:
            if line.lstrip().startswith("- ") and lines and lines[-1] and not lines[-1].lstrip().startswith("- "):
                lines += [""] if not lines[-1].startswith(" ") else []
            lines.append(_inline(line))
    return "\n".join(lines) + "\n"


def _inline(text: str) -> str:
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)
    text = re.sub(r"\[([^]]+)\]\((https?://[^)]+)\)", r"`\1 <\2>`__", text)
    text = re.sub(r"\[([^]]+)\]\(docs/([^)]+)\.rst\)", r":doc:`\1 </\2>`", text)
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)


def write_parts(app: Any) -> None:
    """Write the parts where pages include them; unchanged ones are left alone."""
    root = Path(app.srcdir)
    folder = root / "generated" / "parts"
    folder.mkdir(parents=True, exist_ok=True)
    parts = {
        "smallest_n.csv": smallest_n(),
        "by_n.csv": by_n(),
        "command_line.inc": command_line(),
        "changelog.inc": rst_of((root.parent / "CHANGELOG.md").read_text(encoding="utf-8")),
        "contributing.inc": rst_of((root.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")),
    }
    for name, text in parts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_parts, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
