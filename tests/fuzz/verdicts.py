"""One call with odd arguments, and what is to be thought of it."""

import dataclasses
import inspect
import linecache
import math
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import metfa

from .values import ANYTHING, KIND_OF, POOL

OURS = str(Path(metfa.__file__).parent)
THEIRS = str(Path(__file__).parent / "theirs.py")
SLOW = 10.0  # seconds
MOST_MEMORY = 12 * 2**30  # an allocation of nonsense fails instead of filling the machine
CLEAR = (TypeError, ValueError, OSError, ModuleNotFoundError, AttributeError)


@dataclass(frozen=True, eq=False)
class Case:
    """A public callable, and arguments with which it works."""

    name: str
    function: Callable[..., Any]
    good: Mapping[str, Any]
    more: tuple[str, ...] = ()  # further arguments that may be given, where the signature does not show them
    kinds: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # where the name says another thing than usual

    def arguments(self):
        """Names of all that can be given, with their defaults."""
        found = dict.fromkeys((*self.good, *self.more))
        for name, parameter in inspect.signature(self.function).parameters.items():
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                found[name] = None if parameter.default is parameter.empty else parameter.default
        return found


@dataclass(frozen=True)
class Verdict:
    """`word`: right, clear, unclear, silent or slow."""

    case: str
    word: str
    what: str  # kind of exception and where it was raised, or what is silently wrong
    call: str
    message: str = ""


class TooSlow(BaseException):
    pass


@cache
def usual(case):
    """What a call with good arguments warns of, and whether its result holds NaN."""
    given = {name: value() if isinstance(value, Fresh) else value for name, value in case.good.items()}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = case.function(**given)
    return {one.category for one in said}, has_nan(result)


@contextmanager
def within(seconds):
    def stop(*_):
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def little_memory():
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def shown(value):
    try:
        return f"{type(value).__name__} {value!r:.60}".replace("\n", " ")
    except Exception:
        return type(value).__name__


def mutated(case, rng):
    """The good arguments with one to three of them replaced, and the names of these."""
    given = {name: value() if isinstance(value, Fresh) else value for name, value in case.good.items()}
    names = list(case.arguments())
    n_odd = min(len(names), int(rng.choice([1, 1, 1, 2, 2, 3])))
    odd = [names[place] for place in rng.choice(len(names), n_odd, replace=False)]
    for name in odd:
        given[name] = POOL[rng.integers(len(POOL))](rng)
    return given, odd


class Fresh:
    """A good argument that is made for each call, such as the path of a new file."""

    def __init__(self, make):
        self.make = make

    def __call__(self):
        return self.make()


def judged(case, rng):
    """The verdict of one call with odd arguments."""
    given, odd = mutated(case, rng)
    call = f"{case.name}({', '.join(f'{name}={shown(given[name])}' for name in odd)})"
    return verdict_of(case, given, odd, call)


def verdict_of(case, given, odd, call):
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as said, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            with within(1.5 * SLOW):
                result = case.function(**given)
                wrong = silently_wrong(case, given, odd, result, said)
        except TooSlow:
            return Verdict(case.name, "slow", f"over {1.5 * SLOW:g} s", call)
        except Exception as error:
            if time.perf_counter() - started > SLOW:
                return Verdict(
                    case.name, "slow", f"over {SLOW:g} s, then {type(error).__name__}", call, str(error)[:200]
                )
            reason = why_unclear(case, error)
            return Verdict(case.name, "unclear" if reason else "clear", reason, call, f"{error!s:.200}")
    if time.perf_counter() - started > SLOW:
        return Verdict(case.name, "slow", f"over {SLOW:g} s", call)
    return Verdict(case.name, "silent" if wrong else "right", wrong, call)


def why_unclear(case, error):
    """Empty if the error is clear: raised by a line of metfa that raises, with the name of an argument."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    place = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"
    ours = [frame for frame in frames if frame.filename.startswith(OURS)]
    if any(frame.filename == THEIRS for frame in frames):
        return ""  # the user's own function raised it, or what it calls
    if isinstance(error, OSError) and error.filename is not None:
        return ""  # the system's own words, with the path
    if ours and last is not ours[-1]:
        place = f"{place}, called at {Path(ours[-1].filename).relative_to(OURS)}:{ours[-1].lineno}"
    if not isinstance(error, CLEAR) or isinstance(error, UnicodeError):
        return place
    if not ours or last is not ours[-1] or not last.filename.startswith(OURS) or "raise" not in raising(last):
        return place
    message = str(error)
    quoted = set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`([^`]*)`", message))))
    if quoted or "the model's" in message or isinstance(error, OSError):
        return ""
    return f"{place}, no argument named"


def raising(frame):
    """The source of the line that raised, with those before it in the same statement."""
    lines = [linecache.getline(frame.filename, number) for number in range(max(1, frame.lineno - 4), frame.lineno + 3)]
    return " ".join(lines)


def silently_wrong(case, given, odd, result, said):
    """What is wrong with a call that went well: an odd value was accepted, or there are NaN without a word."""
    defaults = case.arguments()
    said_usually, nan_usually = usual(case)
    said = [one for one in said if one.category not in said_usually]
    for name in odd:
        value, kind = given[name], case.kinds.get(name, KIND_OF.get(name, ANYTHING))
        if value is None and defaults[name] is None:
            continue
        if not said and not kind.takes(value):
            return f"`{name}` accepts {type(value).__name__}"
    passed_on = has_nan(given.get("x"))  # by a noise: a missing value stays one
    if not said and not nan_usually and not passed_on and has_nan(result):
        return "NaN in the result, without a word"
    return ""


def has_nan(thing, depth=3):
    if isinstance(thing, np.ndarray):
        return thing.dtype.kind in "fc" and bool(np.isnan(thing).any())
    if isinstance(thing, torch.Tensor):
        return thing.device.type != "meta" and not thing.is_sparse and bool(torch.isnan(thing).any())
    if isinstance(thing, float):
        return math.isnan(thing)
    if depth == 0:
        return False
    if isinstance(thing, list | tuple):
        return any(has_nan(part, depth - 1) for part in thing)
    if isinstance(thing, dict):
        return any(has_nan(part, depth - 1) for part in thing.values())
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        fields = (
            field.name for field in dataclasses.fields(thing) if field.name not in ("inputs", "provenance", "curves")
        )
        return any(has_nan(getattr(thing, name), depth - 1) for name in fields)
    return False


def run(cases, n_calls, seed, report=None):
    """Verdicts of random calls, the same for each seed: the i-th call has a generator of its own."""
    found = []
    with little_memory():
        for number in range(n_calls):
            rng = np.random.default_rng([seed, number])
            case = cases[number % len(cases)]
            np.random.seed(0)
            found.append(judged(case, rng))
            if report and (number + 1) % 1000 == 0:
                report(number + 1)
    return found


def table(verdicts):
    """Lines: rates, then the unclear and silent kinds by callable, the most frequent first."""
    words = Counter(verdict.word for verdict in verdicts)
    lines = [
        f"{len(verdicts)} calls: " + ", ".join(f"{word} {n} ({n / len(verdicts):.2%})" for word, n in words.items())
    ]
    bad = [verdict for verdict in verdicts if verdict.word not in ("right", "clear")]
    for (word, what), n in Counter((verdict.word, verdict.what) for verdict in bad).most_common():
        ones = [verdict for verdict in bad if (verdict.word, verdict.what) == (word, what)]
        cases = Counter(verdict.case for verdict in ones)
        lines.append(f"{n:4d} {word}: {what}  [{', '.join(f'{name} {k}' for name, k in cases.most_common(6))}]")
        lines.extend(f"       {one.call}\n         {one.message}" for one in ones[:2])
    return "\n".join(lines)


if sys.platform == "win32":  # no alarm, no limits of memory
    raise ImportError("the fuzz needs signals and resource limits")
