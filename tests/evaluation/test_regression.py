"""Recorded explanations: checked against the present model, resumed, refused if they are of another question."""

import csv
import json
import re
import shutil
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import metfa
from metfa.evaluation import read_regression

MODELS = '''
    import torch
    from torch import nn

    from metfa.models import LoadedModel, WholePicture

    INTERRUPT_AFTER = None


    class Net(nn.Module):
        """What is bright in the lower half; with `corner`, also white in the corner."""

        def __init__(self, corner=0.0):
            super().__init__()
            self.corner = corner
            generator = torch.Generator().manual_seed(0)
            self.weights = nn.Parameter(torch.rand(3, 12, 12, generator=generator) + 0.5)

        def forward(self, x):
            global INTERRUPT_AFTER
            if INTERRUPT_AFTER is not None:
                INTERRUPT_AFTER -= 1
                if INTERRUPT_AFTER < 0:
                    raise KeyboardInterrupt
            lower = ((x + 0.5) * self.weights).square()[:, :, 6:].mean((1, 2, 3)) - 1
            white = (x[:, :, :4, :4].mean((1, 2, 3)) - 0.8).relu() * self.corner
            return torch.stack([-lower - white, lower + white], 1)


    def loaded(corner, size=None):
        return LoadedModel(Net(corner).eval(), WholePicture(size))


    def v1():
        return loaded(0.0)


    def v2():
        return loaded(60.0)


    def smaller():
        return loaded(0.0, (6, 6))


    def words(texts):
        sums = torch.tensor([[sum(sum(map(ord, w)) % 7 - 2.5 for w in text.split())] for text in texts])
        return torch.cat([-sums, sums], 1).div(8).softmax(1).numpy()


    def text_model():
        return words
'''

FILE = """
    [model]
    name = "regressed:v1"

    [data]
    inputs = "pictures"

    [explainer]
    method = "gradient"

    [sampling]
    noise = "uniform:0.1"
    n_samples = 16
    seed = 3

    [question]
    regions = "grid:3"
    delta = 0.01
"""


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    (folder / "regressed.py").write_text(textwrap.dedent(MODELS))
    sys.path.insert(0, str(folder))
    import regressed

    yield regressed
    sys.path.remove(str(folder))


def made(folder, number, white):
    """Pictures of which one has a white corner, the file, and the record."""
    (folder / "pictures").mkdir()
    for index in range(number):
        pixels = np.random.default_rng(index).integers(60, 180, (12, 12, 3), dtype=np.uint8)
        if index == white:
            pixels[:4, :4] = 250
        Image.fromarray(pixels).save(folder / "pictures" / f"p{index:02d}.png")
    write(folder / "check.toml")
    read(folder / "check.toml").record(folder / "record")
    return folder


@pytest.fixture(scope="session")
def kept(models, tmp_path_factory):
    return made(tmp_path_factory.mktemp("recorded"), 3, white=1)


@pytest.fixture
def place(kept, tmp_path):
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    return tmp_path


def write(path, text=FILE, **changed):
    text = textwrap.dedent(text)
    for name, value in changed.items():
        given, there = f"{name} = {value}", re.compile(f"^{name} = .*$", re.MULTILINE)
        text = there.sub(given, text) if there.search(text) else f"{text}{given}\n"
    path.write_text(text)
    return path


def read(path, **settings):
    return read_regression(path, allow_import=True, **settings)


def tree(folder):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_planted_change_in_one_of_twenty_inputs_is_named_and_no_other(models, tmp_path):
    place = made(tmp_path, 20, white=13)
    changes = read(place / "check.toml", model="regressed:v2").check(place / "record")
    assert changes.family == 180
    assert changes.changed_inputs == ("p13.png",)
    assert changes.changes[0].feature == "rows 0-3, columns 0-3"
    assert len(changes.equal) == 19


class TestCheck:
    def test_the_same_model_has_not_changed(self, kept):
        before = tree(kept / "record")
        changes = read(kept / "check.toml").check(kept / "record")
        assert not changes
        assert (changes.family, changes.n_samples, changes.within) == (27, 16, 27)
        assert changes.equal == changes.inputs == ("p00.png", "p01.png", "p02.png")
        assert tree(kept / "record") == before

    def test_another_model_has_changed_where_it_looks_at_something_else(self, kept):
        changes = read(kept / "check.toml", model="regressed:v2").check(kept / "record")
        assert changes.changed_inputs == ("p01.png",)
        assert (changes.before["model"], changes.after["model"]) == ("regressed:v1", "regressed:v2")

    def test_the_differences_are_those_of_two_calls_of_explain(self, kept, models):
        changes = read(kept / "check.toml").check(kept / "record", models.v2())
        pixels = models.v1().preprocess(Image.open(kept / "pictures/p01.png"))[None]
        noise, regions = metfa.noise.Uniform(0.1, bounds=(0, 1)), metfa.regions.grid((12, 12), 3)
        before, after = (
            metfa.explain(
                metfa.explainers.Gradient(model().module), pixels, 0, noise=noise, n_samples=16, rng=3
            ).over(regions)
            for model in (models.v1, models.v2)
        )  # fmt: skip
        found = {change.feature: change.difference for change in changes.changes}
        expected = dict(zip(regions.names, np.median((after.values - before.values)[:, 0], axis=0), strict=True))
        assert found == pytest.approx({name: expected[name] for name in found}, abs=1e-5)
        assert changes.after["model"] == "LoadedModel"

    def test_another_batch_size_rounds_and_changes_nothing(self, place):
        other = write(place / "other.toml", FILE.replace("seed = 3", "seed = 3\n    batch_size = 3"))
        assert not read(other).check(place / "record")

    def test_the_recorded_class_is_explained_in_both_and_another_prediction_is_said(self, kept, models):
        class Other(models.Net):
            def forward(self, x):
                return super().forward(x).flip(1)

        loaded = replace(models.v1(), module=Other().eval())
        changes = read(kept / "check.toml").check(kept / "record", loaded)
        targets = [metfa.load(kept / f"record/inputs/{number:06d}").target[0] for number in range(3)]
        assert changes.other_predictions == tuple((f"p0{i}.png", t, 1 - t) for i, t in enumerate(targets))
        assert not changes  # the scores of both classes are mirrored, and so are their gradients

    def test_delta_and_alpha_are_those_of_the_file_now(self, place):
        changes = read(write(place / "check.toml", delta=9, alpha=0.01)).check(place / "record", "regressed:v2")
        assert not changes
        assert (changes.delta, changes.alpha, changes.before["delta"]) == (9, 0.01, 0.01)

    @pytest.mark.parametrize("scale", ["share", "rank"])
    def test_whole_maps_are_scaled_before_they_are_pooled(self, place, scale):
        described = read(write(place / "check.toml", scale=f'"{scale}"', delta=0))
        described.record(place / "scaled")
        assert metfa.load(place / "scaled/inputs/000000").feature_shape == (12, 12)
        changes = described.check(place / "scaled", "regressed:v2")
        assert (changes.family, changes.scale) == (27, scale)
        assert changes.changed_inputs == ("p01.png",)

    def test_single_pixels(self, place):
        text = FILE.replace('"pictures"', '"pictures"\n    limit = 1')
        described = read(write(place / "check.toml", text, regions='"none"'))
        described.record(place / "pixels")
        assert described.check(place / "pixels").family == 144

    def test_texts_are_compared_word_by_word(self, models, tmp_path):
        with (tmp_path / "texts.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["text"], ["a dull start"], ["one good joke, and a lovely end"]])
        text = FILE.replace("regressed:v1", "regressed:text_model").replace('"pictures"', '"texts.csv"')
        text = text.replace('"gradient"', '"occlusion"').replace("uniform:0.1", "synonyms:0.5")
        described = read(write(tmp_path / "check.toml", text))
        described.record(tmp_path / "record")
        changes = described.check(tmp_path / "record")
        assert (changes.family, changes.noun, bool(changes)) == (10, "word", False)
        louder = described.check(tmp_path / "record", lambda texts: models.words([f"{text} x" for text in texts]))
        assert louder.family == 10


class TestRecord:
    def test_only_the_scores_of_regions_are_kept(self, kept):
        kept_sample = metfa.load(kept / "record/inputs/000000")
        assert kept_sample.values.shape == (16, 1, 9)
        assert kept_sample.regions == metfa.regions.grid((12, 12), 3)

    def test_an_interrupted_record_goes_on_and_is_the_same(self, kept, models, place, monkeypatch):
        described = read(place / "check.toml")
        monkeypatch.setattr(models, "INTERRUPT_AFTER", 12)
        with pytest.raises(KeyboardInterrupt):
            described.record(place / "again")
        done = sorted((place / "again/inputs").glob("*/manifest.json"))
        assert 0 < len(done) < 3
        monkeypatch.setattr(models, "INTERRUPT_AFTER", None)
        with pytest.raises(ValueError, match=r"is an unfinished record, p\d\d.png is missing: repeat the call"):
            described.check(place / "again")
        before = tree(done[0].parent)
        finished = described.record(place / "again")
        assert not finished.was_finished
        assert tree(done[0].parent) == before
        for number in range(3):
            one, other = (metfa.load(path / f"record/inputs/{number:06d}") if path is kept else
                          metfa.load(path / f"again/inputs/{number:06d}") for path in (kept, place))  # fmt: skip
            assert np.array_equal(one.values, other.values)
        assert finished.n_bytes == sum(path.stat().st_size for path in (place / "again").rglob("*") if path.is_file())

    def test_a_finished_record_is_left_as_it_is(self, place):
        before = tree(place / "record")
        assert read(place / "check.toml").record(place / "record").was_finished
        assert tree(place / "record") == before

    def test_no_record_is_of_two_models(self, models, place, monkeypatch):
        described = read(place / "check.toml")
        with pytest.raises(
            FileExistsError, match="holds a record of regressed:v1, not regressed:v2; give a new folder"
        ):
            described.record(place / "record", "regressed:v2")
        shutil.rmtree(place / "record/inputs/000002")  # an unfinished one, whose model is another by the same name
        monkeypatch.setattr(models, "v1", models.v2)
        with pytest.raises(FileExistsError, match="of another model: the clean input's attributions differ"):
            described.record(place / "record")

    def test_nothing_else_is_overwritten(self, place):
        with pytest.raises(FileExistsError, match="is not empty and holds no record"):
            read(place / "check.toml").record(place / "pictures")
        with pytest.raises(NotADirectoryError, match="is a file"):
            read(place / "check.toml").record(place / "check.toml")
        before = tree(place / "record")
        with pytest.raises(FileExistsError, match="holds a record with seed=3, not 4; give a new folder"):
            read(write(place / "check.toml", seed=4)).record(place / "record")
        assert tree(place / "record") == before

    def test_too_few_samples_are_refused_before_the_model_is_asked(self, place, models, monkeypatch):
        monkeypatch.setattr(models, "INTERRUPT_AFTER", 0)
        described = read(write(place / "check.toml", n_samples=10))
        with pytest.raises(
            metfa.TooFewSamplesError, match=r"holm over 27 differences.* got 10, at least 11 are needed"
        ):
            described.record(place / "few")
        assert not (place / "few").exists()
        with pytest.raises(metfa.TooFewSamplesError, match=r"got 16, at least 2\d are needed"):
            read(write(place / "check.toml", alpha=0.0001)).check(place / "record")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"noise": '"uniform:0.2"'}, "noise=uniform:0.1, not uniform:0.2"),
        ({"seed": 4}, "seed=3, not 4"),
        ({"n_samples": 17}, "n_samples=16, not 17"),
        ({"regions": '"grid:4"'}, "regions=grid:3, not grid:4"),
        ({"method": '"smoothgrad"'}, "method=gradient, not smoothgrad"),
        ({"scale": '"rank"'}, "scale=raw, not rank"),
    ],
)
def test_a_record_of_another_question_is_refused_by_name(changed, said, place):
    before = tree(place / "record")
    with pytest.raises(ValueError, match=f"holds a record with {re.escape(said)}: check it by the file"):
        read(write(place / "check.toml", **changed)).check(place / "record")
    assert tree(place / "record") == before


def test_other_inputs_are_refused_by_name(place):
    Image.new("RGB", (12, 12), "red").save(place / "pictures/p02.png")
    with pytest.raises(ValueError, match=r"holds a record of another content or target of the input 'p02.png'"):
        read(place / "check.toml").check(place / "record")
    (place / "pictures/p02.png").unlink()
    with pytest.raises(ValueError, match=r"with the input 'p02.png', which is not among the inputs now"):
        read(place / "check.toml").check(place / "record")


def test_the_same_texts_in_another_order_are_refused_as_such(models, tmp_path):
    text = FILE.replace("regressed:v1", "regressed:text_model").replace('"pictures"', '"texts.csv"')
    text = text.replace('"gradient"', '"occlusion"').replace("uniform:0.1", "synonyms:0.5")
    described = {}
    for name, lines in (
        ("then", ["a dull film", "one good joke"]),
        ("moved", ["one good joke", "a dull film"]),
        ("other", ["a", "b"]),
    ):
        (tmp_path / "texts.csv").write_text("\n".join(["text", *lines]))
        described[name] = read(write(tmp_path / f"{name}.toml", text))
    described["then"].record(tmp_path / "record")
    said = "of the same inputs in another order, as the input '0' is another one now .texts are paired by their places"
    with pytest.raises(ValueError, match=f"holds a record {said}"):
        described["moved"].check(tmp_path / "record")
    with pytest.raises(ValueError, match="holds a record of another content or target of the input '0'"):
        described["other"].check(tmp_path / "record")


def test_a_model_that_sees_other_pixels_is_refused(place):
    with pytest.raises(
        ValueError, match=r"sees other pixels of 'p00.png' .*\(3, 12, 12\) pixels then, \(3, 6, 6\) now"
    ):
        read(place / "check.toml").check(place / "record", "regressed:smaller")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "inputs/000002/values.npy").write_bytes(b"x" * 99), r"000002.values.npy"),
        (lambda folder: (folder / "regression.json").write_text("{"), r"regression.json is damaged"),
        (lambda folder: (folder / "regression.json").write_text('{"schema_version": 9}'), r"schema version 9"),
        (lambda folder: (folder / "regression.json").write_text('{"schema_version": 1, "asked": 3}'), r"is damaged"),
        (lambda folder: (folder / "regression.json").unlink(), r"holds no record \(regression.json is missing\)"),
        (shutil.rmtree, r"`against`: no such folder"),
    ],
)
def test_damaged_records_are_refused_by_name(damage, said, place):
    damage(place / "record")
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        read(place / "check.toml").check(place / "record")


def test_the_record_says_how_it_was_made(kept):
    said = json.loads((kept / "record/regression.json").read_text())
    assert (said["model"], said["delta"], said["alpha"], said["correction"]) == ("regressed:v1", 0.01, 0.05, "holm")
    assert said["asked"]["noise"] == "uniform:0.1"
    assert said["versions"]["numpy"] == np.__version__


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FILE.replace("[model]", "[modl]"), r"no entry 'modl', did you mean 'model'"),
        (FILE.replace("[explainer]", "[question]").replace("method", "delta"), "not a TOML file"),
        (FILE.replace("n_samples", "samples"), r"\[sampling\] has no entry 'samples'"),
        (FILE.replace("uniform:0.1", "loud"), r"\[sampling\] noise: the noise must be"),
        (FILE.replace('"gradient"', '"gradent"'), r"\[explainer\]: the method must be .*'gradient'"),
        (
            FILE.replace("grid:3", "squares"),
            "`regions` must be superpixels\\[:NUMBER\\], grid\\[:ROWS\\], or none, got",
        ),
        (FILE.replace("delta = 0.01", "delta = -1"), "`delta` must be"),
        (FILE.replace("delta", "scale"), "`scale` must be"),
        (FILE.replace("n_samples = 16", "n_samples = 0"), "`n_samples` must be"),
        (FILE.replace("delta = 0.01", 'correction = "holmes"'), "`correction` must be None or one of"),
        (FILE.replace("delta = 0.01", "alpha = 0.7"), "`alpha` must lie between"),
        (FILE.replace('"pictures"', '"nowhere"'), "no such folder or file"),
        (FILE.replace('inputs = "pictures"', "inputs = 3"), "`inputs` must be a string, got 3"),
    ],
)
def test_mistakes_in_the_file_are_named(text, said, place):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=said):
        read(write(place / "check.toml", text))


def test_a_device_that_is_not_there_is_named(place):
    text = FILE.replace("seed = 3", 'seed = 3\n    device = "nowhere"')
    with pytest.raises(ValueError, match="`device` 'nowhere' is not available"):
        read(write(place / "check.toml", text)).check(place / "record")


def test_code_that_the_file_names_needs_leave(place):
    with pytest.raises(ValueError, match="the regression file names 'regressed:v1', and importing it runs its code"):
        read_regression(place / "check.toml")
    assert read_regression(place / "check.toml", model="regressed:v2").model == "regressed:v2"
    with pytest.raises(FileNotFoundError, match="no such regression file"):
        read_regression(place / "nowhere.toml")
