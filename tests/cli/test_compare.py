"""`metfa compare`: what changed between two folders, with an exit code, and what cannot be compared."""

import json
import re
import shutil

import numpy as np
import pytest
from PIL import Image

import metfa
from metfa._base.own_files import foreign_in
from metfa.results.differences import difference_of

SIDE, N = 12, 24
NOISE = metfa.noise.Uniform(0.1, bounds=(0, 1))
PICTURES = np.random.default_rng(0).uniform(0.2, 0.8, (20, 3, SIDE, SIDE)).astype(np.float32)
PICTURES[13, :, :4, :4] = 1.0  # what the other model looks at


def old(inputs, target=0):
    return inputs.mean(1) * np.linspace(1, 2, SIDE)


def new(inputs, target=0):
    """It gives more to white in the corner, and else the same."""
    white = np.clip(inputs[:, :, :4, :4].mean((1, 2, 3), keepdims=True)[..., 0] - 0.85, 0, 1)
    return old(inputs) + 5 * white * (np.add.outer(np.arange(SIDE), np.arange(SIDE)) < 6)


def jittered(inputs, target=0):
    """The same up to draws of its own that depend on nothing else than the copy."""
    draws = np.stack([np.random.default_rng(int(1e6 * abs(float(row.sum())))).normal(0, 0.2, old(row[None])[0].shape)
                      for row in inputs])  # fmt: skip
    return old(inputs) + draws


def sampled(explainer, picture, **settings):
    return metfa.explain(explainer, picture[None], 0, **{"noise": NOISE, "n_samples": N, "rng": 0, **settings})


def save_all(folder, explainer, pictures=PICTURES, names=None, **settings):
    for number, picture in enumerate(pictures):
        name = f"p{number:02d}" if names is None else names[number]
        sampled(explainer, picture, **settings).save(folder / name)
    return folder


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    save_all(folder / "before", old)
    save_all(folder / "after", new)
    return folder


@pytest.fixture
def folders(kept, tmp_path, metfa_command, monkeypatch):
    """The folders before and after are at hand, and results may be written into another folder."""
    monkeypatch.chdir(kept)
    return tmp_path


@pytest.fixture
def copied(kept, tmp_path, metfa_command, monkeypatch):
    """Folders before and after of the pictures 0, 3, 5 and 13, which may be changed."""
    for side in ("before", "after"):
        for number in (0, 3, 5, 13):
            shutil.copytree(kept / side / f"p{number:02d}", tmp_path / side / f"p{number:02d}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_planted_change_in_one_of_twenty_inputs_is_named(metfa_command, folders):
    done = metfa_command("compare", "before", "after", "--fail-on-change", "--regions", "grid:3")
    assert done.code == 1
    assert re.search(r"^changed: +\d of 180 regions of 20 inputs changed, in p13$", done.out, re.MULTILINE)
    named = re.findall(
        r"^change: +(p\d+), (.*?): ([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+)\), (more|less)", done.out, re.MULTILINE
    )
    assert {name for name, *_ in named} == {"p13"}
    assert named[0][1] == "rows 0-3, columns 0-3"
    regions = metfa.regions.grid((SIDE, SIDE), 3)
    parts = [metfa.load(f"{side}/p13").over(regions).values[:, 0, 0] for side in ("before", "after")]
    assert float(named[0][2]) == pytest.approx(np.median(parts[1] - parts[0]), rel=1e-3)
    assert float(named[0][3]) <= float(named[0][2]) <= float(named[0][4])
    assert "holm over all 180 together" in done.out


def test_without_the_option_the_exit_code_is_0(metfa_command, folders):
    done = metfa_command("compare", "before", "after", "--regions", "grid:3")
    assert done.code == 0
    assert "changed, in p13" in done.out
    assert re.search(
        r"^p13: +\d of 9 regions \(\d+% of the picture\) gets? significantly more than before", done.out, re.MULTILINE
    )


@pytest.mark.parametrize("explainer", [old, lambda inputs, target=0: old(inputs) * np.float32(1 + 1e-7)])
def test_the_same_and_other_rounding_are_no_change(explainer, metfa_command, tmp_path):
    save_all(tmp_path / "again", explainer, PICTURES[:3], batch_size=1)
    save_all(tmp_path / "first", old, PICTURES[:3], batch_size=7)
    done = metfa_command("compare", "first", "again", "--fail-on-change", "--regions", "none")
    assert done.code == 0
    assert f"no change is shown in {3 * SIDE * SIDE} features of 3 inputs; this does not mean" in done.out


def test_an_explainer_with_other_draws_is_no_change(metfa_command, tmp_path):
    save_all(tmp_path / "one", jittered, PICTURES[:5])
    save_all(tmp_path / "two", lambda inputs, target=0: 2 * old(inputs) - jittered(inputs), PICTURES[:5])
    done = metfa_command("compare", "one", "two", "--fail-on-change", "--regions", "grid:3")
    assert done.code == 0
    assert "equal:" not in done.out


def test_delta_forgives_smaller_changes_and_says_what_lies_within(metfa_command, folders):
    done = metfa_command("compare", "before", "after", "--fail-on-change", "--regions", "grid:3", "--delta", 2)
    assert done.code == 0
    assert "no change by more than 2 is shown in 180 regions" in done.out
    assert (
        "180 of 180 median differences are shown to lie within 2, each falsely with probability at most 5%" in done.out
    )


def test_the_terms_are_those_that_are_given(metfa_command, folders):
    done = metfa_command(
        *("compare", "before", "after", "--regions", "grid:2", "--alpha", 0.01, "--correction", "bonferroni"),
        *("--names", "v1", "v2", "--scale", "share", "--confidence", 0.9),
    )
    assert "bonferroni over all 80 together, both sides, alpha 0.01" in done.out
    assert "90% interval of all 80 together" in done.out
    assert "more in v2 than in v1" in done.out
    parts = [metfa.load(f"{side}/p13").scaled("share") for side in ("before", "after")]
    pooled = [part.over(metfa.regions.grid((SIDE, SIDE), 2)).values[:, 0, 0] for part in parts]
    first = re.search(r"p13, rows 0-5, columns 0-5: ([+-][\d.e-]+)", done.out)[1]
    assert float(first) == pytest.approx(np.median(pooled[1] - pooled[0]), rel=1e-3)


@pytest.mark.slow
def test_one_pair_has_a_whole_report_and_a_folder(metfa_command, copied):
    done = metfa_command("compare", "before/p13", "after/p13", "--regions", "grid:3", "--out", "found")
    assert done.code == 0
    for line in (
        r"^regions: +\d of 9 regions \(\d+% of the picture\) get significantly more than before: .rows 0-3, col",
        r"^of regions: +a grid of 3 x 3; no region is called \"more than before\" falsely",
        r"^more than before: +\d+\.\d\d% ",
        r"^class explained: +class 0$",
    ):
        assert re.search(line, done.out, re.MULTILINE), line
    names = sorted(path.name for path in (copied / "found").iterdir())
    assert names == ["changes.json", "figure.png", "maps.png", "report.html", "report.txt"]
    assert (copied / "found/report.txt").read_text() in done.out
    assert "figure: found/figure.png\nfigure: found/maps.png\npage: found/report.html\n" in done.out
    read = json.loads((copied / "found/changes.json").read_text())
    assert (read["changed"], read["inputs"], read["family"]) == (True, ["p13"], 9)
    refused = metfa_command("compare", "before/p13", "after/p13", "--out", "found")
    assert "found exists already: give another `--out`" in refused.error


@pytest.mark.slow
def test_several_pairs_have_folders_of_their_own(metfa_command, copied):
    shutil.rmtree(copied / "before/p03")
    shutil.rmtree(copied / "after/p05")
    done = metfa_command("compare", "before", "after", "--regions", "none", "--out", "found")
    assert done.code == 0
    names = sorted(path.name for path in (copied / "found").iterdir())
    assert names == ["changes.json", "p00", "p13", "report.html", "report.txt"]
    assert foreign_in(copied / "found") is None
    assert [path.name for path in (copied / "found/p13").iterdir()] == ["figure.png"]
    assert (copied / "found/report.txt").read_text().count("\ninput:") == 2


def test_a_batch_is_compared_input_by_input(metfa_command, copied):
    for name, explainer, pictures in (("one", old, PICTURES), ("two", new, PICTURES[::-1])):
        metfa.explain(explainer, pictures, 0, noise=NOISE, n_samples=N, rng=0).save(copied / name)
    done = metfa_command("compare", "one", "two", "--fail-on-change", "--regions", "grid:3")
    assert done.code == 1
    assert re.search(r"of 180 regions of 20 inputs changed, in one, input 13$", done.out, re.MULTILINE)
    mixed = metfa_command("compare", "before", "two", "--regions", "grid:3")
    assert re.search(r"of 36 regions of 4 inputs changed, in p13$", mixed.out, re.MULTILINE)
    assert "only after:       two, input 0, two, input 1" in mixed.out


NAMED = ("a<b>/../c", "$x$ = é", "..", "x\x1b[1m" + "y" * 300)


def save_named(folder, names=NAMED):
    for side, explainer in (("ra", old), ("rb", new)):
        metfa.explain(
            explainer, PICTURES[:len(names)] if len(names) > 1 else PICTURES[[13]], 0, noise=NOISE, n_samples=N, rng=0,
            run=metfa.Run(input_names=names),
        ).save(folder / side)  # fmt: skip


def test_names_that_the_user_gave_are_the_names(metfa_command, tmp_path):
    save_named(tmp_path, NAMED[:3])
    done = metfa_command("compare", "ra", "rb", "--regions", "grid:2")
    assert re.findall(r"^(.*?): +no region stands out", done.out, re.MULTILINE) == list(NAMED[:3])
    (tmp_path / "one").mkdir()
    save_named(tmp_path / "one", ["cat"])
    assert "of 1 input changed, in cat\n" in metfa_command("compare", "one/ra", "one/rb", "--regions", "grid:2").out
    shutil.copytree(tmp_path / "one/ra", tmp_path / "one/rc")
    done = metfa_command("compare", "one", "one", "--regions", "grid:2")  # which of them is meant must be seen
    assert re.findall(r"^(r.*?): +no region", done.out, re.MULTILINE) == ["ra, cat", "rb, cat", "rc, cat"]
    assert "every sample of all inputs is the same in both" in done.out


@pytest.mark.slow
def test_folders_of_any_name_lie_in_the_new_folder(metfa_command, tmp_path):
    save_named(tmp_path)
    assert metfa_command("compare", "ra", "rb", "--regions", "none", "--out", "found").code == 0
    names = {path.name for path in (tmp_path / "found").iterdir() if path.is_dir()}
    assert names == {"a-b-c", "x- - é", "picture", "x-1m" + "y" * 56}
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} >= {"found", "ra", "rb"}
    read = json.loads((tmp_path / "found/changes.json").read_text())
    assert read["inputs"] == [*NAMED[:3], "x?[1m" + "y" * 300]
    report = (tmp_path / "found/report.txt").read_text()
    assert re.findall(r"^input: +(.{1,9})", report, re.MULTILINE) == [*NAMED[:3], "x?[1myyyy"]


@pytest.mark.slow
def test_the_time_of_a_batch_is_not_that_of_each_input(metfa_command, copied):
    save_named(copied, ["one", "two"])
    assert metfa_command("compare", "ra", "rb", "--regions", "none", "--out", "batch").code == 0
    times = re.findall("^time: .*$", (copied / "batch/report.txt").read_text(), re.MULTILINE)
    assert len(times) == 2
    assert all(f"for {4 * N} explanations (of all inputs that were explained together), seed 0" in one for one in times)
    done = metfa_command("compare", "before/p13", "after/p13", "--regions", "none")
    assert f" s for {2 * N} explanations, seed 0" in done.out


@pytest.mark.filterwarnings("ignore::metfa.DegenerateAttributionsWarning")
def test_regions_without_marks_have_a_sentence_of_their_own(metfa_command, tmp_path):
    for side, explainer in (("before", old), ("after", new)):
        sampled(explainer, PICTURES[13], noise=lambda inputs, rng: inputs).save(tmp_path / side)
    done = metfa_command("compare", "before", "after", "--regions", "grid:2")
    assert "of regions:       a grid of 2 x 2; no region is marked, and so none falsely\n" in done.out


def test_what_is_in_one_folder_alone_is_named(metfa_command, copied):
    shutil.rmtree(copied / "after/p03")
    shutil.rmtree(copied / "before/p05")
    done = metfa_command("compare", "before", "after", "--regions", "grid:3")
    assert re.search(r"^only before: +p03: not compared$", done.out, re.MULTILINE)
    assert re.search(r"^only after: +p05: not compared$", done.out, re.MULTILINE)
    assert "of 18 regions of 2 inputs" in done.out
    refused = metfa_command("compare", "before", "after", "--fail-on-change").error
    assert "`--fail-on-change` needs the same inputs in both folders, and one alone has p03, p05" in refused


def test_equal_inputs_are_paired_by_their_names(metfa_command, copied):
    for name, explainer in (("one", old), ("two", new)):
        save_all(copied / name, explainer, PICTURES[[13, 13]], ["cat", "dog" if name == "one" else "bird"])
    done = metfa_command("compare", "one", "two", "--regions", "grid:3")
    assert re.search(r"^only before: +dog: not compared$", done.out, re.MULTILINE)
    assert "of 1 input changed, in cat" in done.out


def test_the_same_folder_twice_and_swapped_folders_are_said(metfa_command, copied):
    done = metfa_command("compare", "before", "before", "--fail-on-change", "--regions", "grid:3")
    assert done.code == 0
    assert "caution:          both are the same folder" in done.out
    assert "every sample of all inputs is the same in both, number by number" in done.out
    for path in (copied / "before").glob("*/manifest.json"):
        path.write_text(path.read_text().replace('"started": "20', '"started": "19'))
    right, swapped = (
        metfa_command("compare", *sides, "--regions", "grid:3").out
        for sides in (("before", "after"), ("after", "before"))
    )
    assert "right order" not in right
    assert "caution:          after was made after before: are they in the right order?" in swapped
    assert "rows 0-3, columns 0-3: -" in swapped


def test_tables_and_texts_are_asked_about_feature_by_feature(metfa_command, tmp_path):
    rows, weights = np.ones((1, 3)), np.array([1.0, 0.5, -2.0])
    for name, change in (("before", 0), ("after", 1)):
        metfa.explain(
            lambda inputs, target, change=change: inputs * (weights + np.array([0, change, 0])), rows, 0,
            noise=metfa.noise.Gaussian(0.1), n_samples=20, rng=0, run=metfa.Run(feature_names=["age", "pay", "debt"]),
        ).save(tmp_path / name)  # fmt: skip
    done = metfa_command("compare", "before", "after", "--fail-on-change")
    assert done.code == 1
    assert re.search(r"^changed: +1 of 3 features of 1 input changed, in before$", done.out, re.MULTILINE)
    assert "before, pay: +" in done.out
    refused = metfa_command("compare", "before", "after", "--regions", "grid:2").error
    assert "`--regions` grid:2 needs maps (height, width) of single pixels" in refused


def by_letters(power):
    """Probabilities from what each word's letters add to."""

    def model(texts):
        sums = np.array([sum(sum(map(ord, word)) % 7 - 2.5 for word in text.split()) for text in texts])
        sure = 1 / (1 + np.exp(-power * sums / 8))
        return np.stack([1 - sure, sure], axis=1)

    return model


def test_texts(metfa_command, tmp_path):
    text = "A dull start with one good joke. A lovely end!"
    for name, power in (("before", 1), ("after", 2)):
        metfa.text.explain_text(
            by_letters(power), text, 1, method=metfa.text.Occlusion, n_samples=20, rng=0
        ).save(tmp_path / name)  # fmt: skip
    done = metfa_command("compare", "before", "after", "--fail-on-change")
    assert done.code == 1
    assert "of 10 words of 1 input" in done.out
    assert done.out.startswith("~A~ (dull) ~start~")
    assert re.search(r"^the text itself: +before: scores from .*; after: scores from", done.out, re.MULTILINE)
    assert re.search(r"^sentences: +\d of 2 sentences", done.out, re.MULTILINE)


def test_too_few_samples_name_the_least_number(metfa_command, tmp_path):
    for name in ("one", "two"):
        save_all(tmp_path / name, old, PICTURES[:2], n_samples=8)
    few = metfa_command("compare", "one", "two", "--fail-on-change", "--regions", "grid:3").error
    assert "(holm over 18 differences, both sides together): got 8, at least 10 are needed" in few
    done = metfa_command("compare", "one", "two", "--regions", "grid:3", "--confidence", 0.9)
    assert done.code == 0
    assert "changed:          undecided: too few samples" in done.out


@pytest.fixture(scope="module")
def wrong_ones(tmp_path_factory):
    folder, first = tmp_path_factory.mktemp("wrong"), PICTURES[0]
    (folder / "empty").mkdir()
    save_all(folder / "before", old, PICTURES[:2])
    save_all(folder / "after", new, PICTURES[:2])
    two = {"model": by_letters(1), "text": "one good joke", "target": 1, "method": metfa.text.Occlusion}
    metfa.text.explain_text(**two, rng=0).save(folder / "text")
    sampled(old, first, noise=metfa.noise.Uniform(0.2, bounds=(0, 1))).save(folder / "noisy")
    sampled(old, first, rng=1).save(folder / "seeded")
    sampled(old, first, n_samples=N + 1).save(folder / "longer")
    difference_of(sampled(old, first), sampled(new, first)).save(folder / "compared")
    sampled(old, first).save(folder / "damaged")
    with (folder / "damaged/values.npy").open("r+b") as file:
        file.seek(-3, 2)
        file.write(b"abc")
    (folder / "unfinished").mkdir()
    (folder / "unfinished/run.json").write_text("{}")
    return folder


@pytest.fixture
def wrong(wrong_ones, metfa_command, monkeypatch):
    monkeypatch.chdir(wrong_ones)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere", "after"), "no such folder: nowhere"),
        (("before", "nowhere"), "no such folder: nowhere"),
        (("empty", "after"), "empty holds no results of metfa"),
        (("before/p00", "after/p01"), "no input of before/p00 is in after/p01, their contents differ"),
        (("text", "after"), "one explains texts and the other does not"),
        (("before/p00", "noisy"), "p00: `before` and `after` must have the same noise"),
        (("before/p00", "seeded"), "p00: `before` and `after` must have the same seed"),
        (("before/p00", "longer"), "p00: `before` and `after` must hold the same samples"),
        (("before/p00", "compared"), "p00: `after` holds differences already"),
        (("damaged", "after/p00"), "damaged/values.npy"),
        (("unfinished", "after/p00"), "unfinished"),
        (("before", "after", "--scale", "loud"), "`--scale` must be one of 'raw'"),
        (("before", "after", "--delta", -1), "`--delta` must be"),
        (("before", "after", "--alpha", 0.9), "between 0 and 0.5, got 0.9"),
        (("before", "after", "--confidence", 2), "`--confidence`"),
        (("before", "after", "--names", "a", "a"), "`names` must be two different texts"),
        (("before", "after", "--regions", "squares"), "`--regions` must be superpixels"),
    ],
)
def test_mistakes_are_one_line(arguments, said, metfa_command, wrong):
    assert said in metfa_command("compare", *arguments, "--fail-on-change").error


@pytest.mark.slow
def test_pictures_that_were_explained_by_the_command(explain, metfa_command, tiny, tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    for method in ("gradient", "smoothgrad"):
        assert explain("a.png", "--method", method, "--out", method, samples=12).code == 0
    done = metfa_command("compare", "gradient", "smoothgrad", "--regions", "grid:3")
    assert done.code == 0
    assert re.search(r"^method: +before: gradient; after: smoothgrad$", done.out, re.MULTILINE)
    assert re.search(r"^prediction: +class \d", done.out, re.MULTILINE)


def test_other_classes_are_no_change_of_one_explanation(metfa_command, tmp_path):
    for target in (0, 1):
        for number, picture in enumerate(PICTURES[:2]):
            settings = {"noise": NOISE, "n_samples": N, "rng": 0}
            metfa.explain(old, picture[None], target, **settings).save(tmp_path / f"of{target}/p{number}")
    shown = metfa_command("compare", "of0", "of1", "--regions", "grid:3")
    assert shown.code == 0
    assert "explained:        p0: class 0 before, class 1 after, so not the same is compared" in shown.out
    refused = metfa_command("compare", "of0", "of1", "--regions", "grid:3", "--fail-on-change")
    assert "needs the same class explained on both sides, and p0 has class 0 before and class 1 after" in refused.error
