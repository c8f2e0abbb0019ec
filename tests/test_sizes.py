"""Files that fit in a head, calls that fit on a screen.

What is larger stands in a list. The lists only shrink: what has become small enough must leave them.
"""

import importlib.util
import inspect
from pathlib import Path

import metfa

ROOT = Path(metfa.__file__).parent

MOST_LINES = 300
STILL_LONG = {  # each may shrink, and none grow
    "cli/run.py": 391,
    "explainers/mask.py": 359,
    "stats/_multiplicity.py": 319,
    "stats/sequential.py": 328,
}

MOST_ARGUMENTS = 12
PLACES = {"ax", "fig"}  # where a figure is drawn is not counted: it changes nothing of what it shows
SETTINGS = {  # of a published method, one by one; of a study, which is a description; of a result, made by metfa
    "metfa.AttributionSample",
    "metfa.Study",
    "metfa.attacks.AttackSettings",
    "metfa.evaluation.Changes",
    "metfa.evaluation.Regression",
    "metfa.evaluation.Study",
    "metfa.explainers.IGOS",
    "metfa.explainers.MASK",
}


def test_files_fit_in_a_head():
    lines = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("\n") for path in ROOT.rglob("*.py")
    }
    long = {file: n for file, n in lines.items() if n > MOST_LINES}
    assert not {file: n for file, n in long.items() if n > STILL_LONG.get(file, MOST_LINES)}
    assert not STILL_LONG.keys() - long.keys(), "these are short now: take them out of STILL_LONG"


def test_calls_fit_on_a_screen():
    many = {name for name, n_arguments in public_callables() if n_arguments > MOST_ARGUMENTS}
    assert not many - SETTINGS
    assert not SETTINGS - many, "these take few arguments: take them out of SETTINGS"


def public_callables():
    """Functions, classes and their methods that packages name in `__all__`, with their numbers of arguments."""
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    rooms -= {"explore"} if importlib.util.find_spec("anywidget") is None else set()
    for module in ("metfa", *(f"metfa.{room}" for room in sorted(rooms)), "metfa.allocator"):
        package = importlib.import_module(module)
        for name in getattr(package, "__all__", ()):
            thing = getattr(package, name)
            if inspect.isclass(thing) and not issubclass(thing, BaseException):
                yield f"{module}.{name}", n_arguments(thing)
                for key, method in methods_of(thing):
                    if not key.startswith("_") or key == "__call__":
                        yield f"{module}.{name}.{key}", n_arguments(method) - 1
            elif inspect.isfunction(thing):
                yield f"{module}.{name}", n_arguments(thing)


def methods_of(thing):
    """Its own methods and those of classes of ours: a widget has many that are not."""
    found = ((key, inspect.getattr_static(thing, key)) for key in dir(thing))
    return [(key, method) for key, method in found if inspect.isfunction(method) and method.__module__[:5] == "metfa"]


def n_arguments(thing):
    return len(inspect.signature(thing).parameters.keys() - PLACES)
