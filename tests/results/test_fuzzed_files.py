"""Files that were changed anywhere either load, and then every view works, or are refused by name."""

import copy
import io
import json
import math
import random
import shutil
import traceback

import numpy as np
import pytest

import metfa
from metfa.results.arrays import digest_of
from metfa.results.sample import AttributionSample

N = 20
PROVENANCE = {
    "explainer": "Gradient", "noise": "Gaussian(std=0.1)", "n_samples": N, "first_sample": 0, "rng": "0x1f",
    "streams": "philox-1", "signed": False, "gaussian_std": 0.1, "batch_size": 4, "device": "cpu",
    "started": "2026-01-01T00:00:00", "seconds": 1.5, "maps_made": N, "versions": {"numpy": "2"}, "torch_threads": 2,
}  # fmt: skip


def made(features, inputs, batch=1, **fields):
    draw = np.random.default_rng(0)
    values = (draw.random((N, batch, *features)) + (draw.random(features) > 0.5)).astype(np.float32)
    usual = {
        "inputs": inputs, "target": (1,) * batch, "vanilla": values[0].copy(), "scores": draw.random((batch, 3)),
        "predictions": draw.integers(0, 3, (N, batch)), "sample_ids": tuple(range(N)),
        "input_names": tuple(f"id{row}" for row in range(batch)), "provenance": PROVENANCE,
    }  # fmt: skip
    return AttributionSample(values=values, **{**usual, **fields})


def until():
    rule = metfa.Until(undecided=0.2, threshold=0.5, max_samples=60)
    return metfa.explain(
        lambda inputs, target: np.abs(inputs),
        np.ones((2, 4)),
        0,
        noise=metfa.noise.Gaussian(0.3),
        n_samples=rule,
        rng=0,
    )


def parts():
    inputs = {"image": np.random.default_rng(1).random((2, 3, 4)), "row": np.ones((2, 2))}
    each = metfa.noise.Uniform(0.5)
    return metfa.explain(
        lambda inputs, target: {"image": inputs["image"] ** 2, "row": inputs["row"] - 1},
        inputs,
        0,
        noise={"image": each, "row": each},
        n_samples=metfa.Until(undecided=0.5, max_samples=28),
        rng=0,
        run=metfa.Run(feature_names={"row": ["a", "b"]}),
    )


FACTS = {"unscaled": [-0.1, 0.4], "r2": 0.8, "unread": 1}
GOOD = {
    "maps": lambda: made((6, 5), np.random.default_rng(1).random((2, 3, 6, 5)), 2),
    "table": lambda: made((4,), np.ones((1, 4)), feature_names=tuple("abcd"), default_terms=metfa.Terms(0.5, 0.1)),
    "words": lambda: made(
        (3,),
        ["a dull film"],
        feature_names=("a", "dull", "film"),
        provenance={**PROVENANCE, "text": FACTS, "class_names": ["bad", "good"]},
    ),
    "until": until,
    "parts": parts,
}
NUMBERS = [0, 1, -1, 2, 3, 7, 0.0, -0.0, 0.5, 1.5, -2.5, 1e308, -1e308, 1e-320, math.inf, -math.inf, math.nan]
NUMBERS += [2**31, 2**63, 2**64, -(2**63), 10**400]
TEXTS = ["", "x", "0x1", "0xzz", "nan", "jenks", "bh", "e-bh", "holm", "none", "=1+1", "\x1b[31m", "\ud800", "\0"]
TEXTS += ["a" * 10_000, "<script>", "../../x", "array", "list", "tuple", "dict"]
TEXTS += ["<f4", ">f8", "<f2", "|S3", "<U3", "<c16", "|b1", "<i8", "|u1", "<M8[D]", "|O"]
LISTS = [[], [None], [[]], [1, 2], [0.5, 0.5], ["a", "b"], ["a", "b", "c", "d"], [{}], [[1, 2], [3, 4]]]
LISTS += [[20, 1, 4], [20, 2, 6, 5], [0], [20, 0, 4]]
NASTY = [None, True, False, {}, {"a": 1}, *NUMBERS, *TEXTS, *LISTS]


def places(content, at=()):
    """Paths to all entries of JSON."""
    if at:
        yield at
    if isinstance(content, dict | list):
        for key in content if isinstance(content, dict) else range(len(content)):
            yield from places(content[key], (*at, key))


def with_change(manifest, draw):
    """The manifest with one entry replaced, removed, or exchanged with another."""
    changed = copy.deepcopy(manifest)
    paths = [path for path in places(manifest) if path[-1] != "digest"]
    *parents, last = draw.choice(paths)
    place = changed
    for key in parents:
        place = place[key]
    kind = draw.random()
    if kind < 0.85:
        place[last] = draw.choice(NASTY)
    elif kind < 0.93:
        del place[last]
    else:
        other = draw.choice([path for path in places(manifest) if len(path) == 1])
        place[last] = copy.deepcopy(manifest[other[0]])
    return changed


def with_array(folder, manifest, draw):
    """The manifest of a folder in which one array has other numbers, another dtype or another shape."""
    changed = copy.deepcopy(manifest)
    name = draw.choice(sorted(manifest["arrays"]))
    array = np.load(folder / f"{name}.npy", allow_pickle=False)
    kind = draw.randrange(4)
    if kind == 0:
        array = array.astype(draw.choice(["f2", "f4", "f8", ">f4", "i1", "i8", "u1", "?", "c16", "S4", "U4", "M8[D]"]))
    elif kind == 1 and array.dtype.kind == "f":
        array.flat[draw.randrange(array.size)] = draw.choice([math.nan, math.inf, -math.inf, 1e30, -1e30, 1e-40])
    elif kind == 2:
        array = array[..., :0] if draw.random() < 0.5 else array[:0]
    else:
        array = draw.choice([array[..., None], array[0], np.full_like(array, 1), -array, array.reshape(-1)])
    np.save(folder / f"{name}.npy", array)
    described = {"dtype": array.dtype.str, "shape": list(array.shape), "digest": digest_of(folder / f"{name}.npy")}
    changed["arrays"][name] = described
    return changed


def views(sample, folder):
    """Ask everything; what a good result cannot answer either is an error that says so."""
    repr(sample)
    several = isinstance(sample, metfa.AttributionParts)
    for part in sample.values() if several else (sample,):
        views_of_one(part)
    if several:
        [str(summary) for of_part in sample.summary().values() for summary in of_part]
    sample.of_input(0).plot().savefig(io.BytesIO())
    sample.report(folder / "report.html")
    sample.save(folder / "again")
    metfa.load(folder / "again")


def views_of_one(sample):
    for ask in (sample.median, sample.mean, sample.std, sample.confidence_interval, sample.smoothed):
        ask()
    sample.terms()
    sample.significance_map()
    [str(summary) for summary in sample.summary()]
    sample.flip_rate  # noqa: B018
    sample.plan(0.1, max_samples=30)
    if len(sample.feature_shape) == 1 and isinstance(sample.inputs, list):
        metfa.text.render_html(sample)
        metfa.text.render_terminal(sample)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", GOOD)
def test_changed_files_load_and_work_or_are_refused(name, tmp_path, quick_figures):
    good = GOOD[name]().save(tmp_path / "good")
    views(metfa.load(good), tmp_path)
    manifest = json.loads((good / "manifest.json").read_text())
    draw, loaded = random.Random(f"20 {name}"), 0
    tries = 20 if name == "parts" else 40  # two figures each
    for number in range(tries):
        folder = tmp_path / str(number)
        shutil.copytree(good, folder)
        changed = with_array(folder, manifest, draw) if number % 3 == 2 else with_change(manifest, draw)
        (folder / "manifest.json").write_text(json.dumps(changed))
        try:
            sample = metfa.load(folder)
        except ValueError as error:
            said = str(error)
            assert str(folder) in said, said
            assert len(said) < 600
        else:
            loaded += 1
            failed = failure(sample, folder)
            assert failed is None, (number, difference(manifest, changed), failed)
        shutil.rmtree(folder)
    assert loaded >= tries / 8  # else the views have hardly been tried


def failure(sample, folder):
    """What went wrong in a view, or None; a good result may meet some limits too, which are said by name."""
    try:
        views(sample, folder)
    except Exception:
        said = traceback.format_exc()
        limits = ("too few samples", "has no features", "a report shows maps")
        return None if any(limit in said for limit in limits) else said
    return None


def difference(old, new):
    paths = [path for path in places(new) if path not in set(places(old)) or at(old, path) != at(new, path)]
    return [(path, repr(at(new, path))[:80]) for path in paths] or "an entry is missing"


def at(content, path):
    for key in path:
        content = content[key]
    return content
