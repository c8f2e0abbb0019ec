"""Results of several inputs: each part as if it were alone, and nothing of a part lost beside a larger one."""

import json

import matplotlib as mpl
import numpy as np
import pytest

import metfa
from metfa.results.layout import Layout, Part
from metfa.sampling.rounds import RoundsUntil

mpl.use("Agg")
WEIGHTS = np.array([2.0, 0.0, -1.0])
RNG = np.random.default_rng(0)
INPUTS = {"image": RNG.random((3, 4, 5)), "table": RNG.random((3, 3)) + 0.5}
NOISE = {"image": metfa.noise.Uniform(0.1), "table": metfa.noise.Gaussian(0.1)}
BLOB = np.outer([0, 1, 1, 0], [0, 1, 1, 0, 0])


def explainer(inputs, target):
    return {"image": 1000 * BLOB * inputs["image"] ** 2, "table": inputs["table"] * WEIGHTS}


def predict(inputs):
    table = inputs["table"] @ WEIGHTS
    return np.stack([table, -table], axis=1)


def explained(explainer=explainer, inputs=INPUTS, target=0, *, noise=NOISE, n_samples=20, **settings):
    return metfa.explain(explainer, inputs, target, noise=noise, n_samples=n_samples, rng=0, **settings)


@pytest.fixture(scope="module")
def result():
    return explained(predict=predict, run=metfa.Run(feature_names={"table": ["age", "income", "debt"]}))


def test_each_part_is_as_if_it_were_alone(result):
    assert list(result) == ["image", "table"]
    assert len(result) == 2
    for name, part in result.items():
        alone = explained(lambda inputs, target, name=name: explainer(inputs, target)[name], predict=predict)
        assert isinstance(part, metfa.AttributionSample)
        assert np.array_equal(part.values, alone.values)
        assert np.array_equal(part.vanilla, alone.vanilla)
        assert np.array_equal(part.significance_map(), alone.significance_map())
        assert np.array_equal(part.terms().threshold == 0, alone.terms().threshold == 0)
        assert part.signed == alone.signed
        assert np.array_equal(part.unit, alone.unit)
        assert np.array_equal(part.inputs, INPUTS[name])
    assert (result["image"].signed, result["table"].signed) == (False, True)
    assert result["table"].feature_names == ("age", "income", "debt")
    assert result["image"].feature_names is None
    assert np.array_equal(result.flip_rate, result["table"].flip_rate)
    assert repr(result).startswith("AttributionParts(20 samples of 3 inputs, 2 parts: 'image' 4×5, 'table' 3, ")
    assert "3 features of part 'table'" in repr(result["table"])


def test_what_the_explainer_says_holds_for_every_part():
    class Says:
        signed, unit = True, 7.0

        def __call__(self, inputs, target):
            return explainer(inputs, target)

    for found in (explained(Says()), explained(Says()).of_input(1)):
        assert [(part.signed, part.unit, part.terms().threshold) for part in found.values()] == [(True, 7.0, 0.0)] * 2


def test_the_numbers_are_those_of_every_batch_size_and_of_a_row_alone(result):
    for size in (1, 7):
        assert np.array_equal(explained(predict=predict, batch_size=size).joined.values, result.joined.values)
    alone = explained(inputs={name: part[1:2] for name, part in INPUTS.items()}, predict=predict)
    one = result.of_input(1)
    assert np.array_equal(alone["table"].values, one["table"].values)
    assert one["table"].values.shape == (20, 1, 3)
    assert one["image"].signed is False
    with pytest.raises(ValueError, match=r"`index` must lie in 0..2"):
        result.of_input(3)


def test_decisions_part_by_part(result):
    marks = result.significance_map({"image": 100.0}, alpha=0.025, correction="holm")
    assert np.array_equal(marks["image"], result["image"].significance_map(100.0, alpha=0.025, correction="holm"))
    assert np.array_equal(marks["table"], result["table"].significance_map(alpha=0.025, correction="holm"))
    summaries = result.summary()
    assert [one.n_features for one in summaries["table"]] == [3] * 3
    assert summaries["table"][1].place == "part 'table' of input 1 of 3"
    assert result.terms(alpha=0.1)["table"].threshold == 0
    assert result.terms(alpha=0.1)["image"].alpha == 0.1
    with pytest.raises(ValueError, match=r"`threshold` has 'tabel', which is no part: there are 'image', 'table'"):
        result.terms({"tabel": 0.0})


def test_what_a_part_has_alone_is_said_to_be_there(result):
    with pytest.raises(AttributeError, match=r"each part has its own: write `result\['image'\].median`"):
        result.median()
    with pytest.raises(AttributeError, match="object has no attribute 'medain'"):
        result.medain()
    with pytest.raises(KeyError, match="no part 'tabel': there are 'image', 'table'"):
        result["tabel"]


def test_a_saved_result_is_the_same(result, tmp_path):
    result.save(tmp_path / "saved")
    for found in (metfa.load(tmp_path / "saved"), metfa.load(tmp_path / "saved").of_input(2)):
        assert isinstance(found, metfa.AttributionParts)
    again = metfa.load(tmp_path / "saved")
    assert list(again) == list(result)
    assert again["table"].feature_names == ("age", "income", "debt")
    assert isinstance(again["table"].values.base, np.memmap) or isinstance(again["table"].values, np.memmap)
    for name in result:
        assert np.array_equal(again[name].values, result[name].values)
        assert np.array_equal(again[name].significance_map(), result[name].significance_map())


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((0, "name"), "picture"),
        ((0, "name"), "table"),
        ((0, "shape"), [4, 4]),
        ((0, "shape"), [-4, -5]),
        ((0, "shape"), 20),
        ((1, "shape"), []),
        ((1, "feature_names"), ["age"]),
        ((1, "signed"), "yes"),
        ((0, "stopping"), {}),
        ((), []),
        ((), {"image": 1}),
        ((0,), "image"),
    ],
)
def test_a_changed_layout_is_refused(result, tmp_path, place, value):
    file = result.save(tmp_path / "saved") / "manifest.json"
    manifest = json.loads(file.read_text())
    *way, last = ("provenance", "parts", *place)
    held = manifest
    for key in way:
        held = held[key]
    held[last] = value
    file.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"manifest.json is damaged: .*(parts|stopping|shape|int|looks)"):
        metfa.load(tmp_path / "saved")


def test_an_interrupted_call_resumes_and_another_model_is_refused(tmp_path):
    run, calls = metfa.Run(store=tmp_path / "store"), []

    def dies(inputs, target):
        calls.append(len(inputs["image"]))
        if len(calls) > 4:
            raise InterruptedError
        return explainer(inputs, target)

    dies.__qualname__ = explainer.__qualname__

    def other(inputs, target):  # as large in all, but for the small part
        found = explainer(inputs, target)
        return {**found, "table": 1.3 * found["table"]}

    other.__qualname__ = explainer.__qualname__

    def other_shapes(inputs, target):
        found = explainer(inputs, target)
        return {**found, "image": found["image"].reshape(-1, 5, 4)}

    other_shapes.__qualname__ = explainer.__qualname__
    with pytest.raises(InterruptedError):
        explained(dies, run=run)
    with pytest.raises(ValueError, match="unfinished run of another model"):
        explained(other, run=run)
    with pytest.raises(ValueError, match="unfinished run with parts"):
        explained(other_shapes, run=run)
    found = explained(run=run)
    assert found.provenance["maps_made"] < 60
    assert np.array_equal(found.joined.values, explained().joined.values)
    again = explained(run=run)
    assert isinstance(again, metfa.AttributionParts)
    assert np.array_equal(again.joined.values, found.joined.values)
    with pytest.raises(FileExistsError, match="of another model"):
        explained(other, run=run)
    with pytest.raises(FileExistsError, match="with parts="):
        explained(other_shapes, run=run)


def test_calls_are_joined(result):
    first = explained(n_samples=12, predict=predict)
    more = explained(n_samples=8, predict=predict, run=metfa.Run(first_sample=12))
    joined = first.concat(more)
    assert np.array_equal(joined["table"].values, result["table"].values)
    with pytest.raises(ValueError, match="`other` has other parts"):
        first.concat(explained(lambda inputs, target: {"table": inputs["table"]}, run=metfa.Run(first_sample=12)))
    scaled = {"image": 1.0, "table": 1.3}
    other = explained(
        lambda inputs, target: {name: part * scaled[name] for name, part in explainer(inputs, target).items()},
        run=metfa.Run(first_sample=12),
    )
    with pytest.raises(ValueError, match="the attributions of a part of the clean inputs differ"):
        first.concat(other)
    with pytest.raises(TypeError, match="`other` must be an AttributionParts, got AttributionSample"):
        first.concat(more["table"])


def test_a_rule_asks_each_part_by_itself(tmp_path):
    rule = metfa.Until(undecided=0.4, max_samples=200)
    found = explained(n_samples=rule, run=metfa.Run(store=tmp_path / "store"))
    assert found.stopping.reason == "reached"
    for name, part in found.items():
        assert part.stopping.reason == "reached"
        assert part.any_time
        assert max(one.undecided for one in part.summary()) <= 0.4
        last = [stopping.looks[-1].undecided for stopping in (part.stopping, found.stopping)]
        assert last[0] <= last[1] <= 0.4
        alone = explained(
            lambda inputs, target, name=name: explainer(inputs, target)[name],
            n_samples=metfa.Until(undecided=0.0, max_samples=found.n_samples, first=part.stopping.looks[0].n_samples),
        )
        assert part.stopping.thresholds == pytest.approx(alone.stopping.thresholds)
    again = metfa.load(tmp_path / "store")
    assert [part.stopping for part in again.values()] == [part.stopping for part in found.values()]
    more = explained(n_samples=5, run=metfa.Run(first_sample=found.n_samples))
    grown = found.concat(more)
    assert grown["table"].stopping.added == 5
    assert grown["table"].n_samples == found.n_samples + 5
    assert grown.of_input(1)["image"].stopping.thresholds == found["image"].stopping.thresholds[1:2]


def test_the_slowest_part_decides():
    def uneven(inputs, target):
        return {"image": 5.0 + inputs["image"], "table": inputs["table"] - INPUTS["table"][:1].mean()}

    rule = metfa.Until(undecided=0.0, threshold=0.0, max_samples=40)
    found = explained(uneven, {name: part[:1] for name, part in INPUTS.items()}, n_samples=rule)
    assert found["image"].stopping.reason == "reached"
    assert found.n_samples == 40 == found.stopping.looks[-1].n_samples
    assert found["table"].stopping.reason == "max_samples" == found.stopping.reason
    assert found.stopping.looks[-1].undecided == found["table"].stopping.looks[-1].undecided > 0


def test_a_part_without_a_threshold_does_not_count():
    def with_noise(inputs, target):  # in the table, all columns are alike
        alike = inputs["table"] / inputs["table"].sum(axis=1, keepdims=True)
        return {"image": explainer(inputs, target)["image"], "table": alike}

    inputs = {"image": INPUTS["image"], "table": np.ones((3, 3))}
    with pytest.warns(metfa.DegenerateAttributionsWarning, match="^part 'table': no feature of input 0"):
        found = explained(with_noise, inputs, n_samples=metfa.Until(undecided=0.4, max_samples=60))
    with pytest.warns(metfa.DegenerateAttributionsWarning, match="^part 'table': no feature"):
        found["table"].significance_map(found["table"].usual_rule)
    assert found["table"].stopping.reason == "no_threshold"
    assert found["image"].stopping.reason == "reached" == found.stopping.reason
    assert found.stopping.looks == found["image"].stopping.looks
    assert "as asked (40%)" in str(found.stopping)


def test_a_rule_that_is_content_looks_again():
    rounds = RoundsUntil(metfa.Until(undecided=0.5, threshold=0.0, max_samples=50), 1)
    values = np.concatenate([np.ones((12, 1, 1)), -np.ones((38, 1, 1))])

    class Seen:
        def values(self, start, stop):
            return values[start:stop]

        def unit(self, taken):
            return 1.0

    rounds.look(Seen(), 12, [])
    assert rounds.next(12, 12.0) is None
    rounds.look(Seen(), 30, [])
    assert rounds.next(30, 30.0) is not None


def test_errors_and_warnings_name_the_part():
    def broken(inputs, target):
        return {"image": inputs["image"], "table": np.where(inputs["table"] > 1.3, np.nan, 1.0) * inputs["table"]}

    with pytest.raises(ValueError, match=r"NaN or infinity for input \d, sample \d+, part 'table'"):
        explained(broken)
    with pytest.warns(metfa.DegenerateAttributionsWarning, match="60 of 60 maps of part 'table' are constant"):
        explained(lambda inputs, target: {"image": inputs["image"], "table": 0 * inputs["table"]})
    calls = []

    def shrinks(inputs, target):
        calls.append(1)
        return {"image": inputs["image"], "table": inputs["table"][:, : 3 - (len(calls) > 5)]}

    with pytest.raises(ValueError, match=r"shape \{'image': \(4, 5\), 'table': \(2,\)\} after .*\(3,\)"):
        explained(shrinks)


def test_rows_that_mix_in_a_small_part_are_seen():
    def mixed(inputs, target):
        return {"image": 1e6 * inputs["image"], "table": inputs["table"] - 0.5 * inputs["table"].mean(axis=0)}

    with pytest.warns(metfa.RowDependenceWarning, match="lets the rows of a batch depend"):
        explained(mixed)


def test_a_frame_is_no_part():
    frame = pytest.importorskip("pandas").DataFrame(INPUTS["table"], columns=["age", "income", "debt"])
    with pytest.raises(TypeError, match=r"`inputs\['table'\]` must be an array, .*`frame.to_numpy\(\)`.*frame.columns"):
        explained(inputs={**INPUTS, "table": frame})
    run = metfa.Run(feature_names={"table": list(frame.columns)})
    found = explained(inputs={**INPUTS, "table": frame.to_numpy()}, run=run)
    assert found["table"].feature_names == ("age", "income", "debt")


def test_names_of_features_belong_to_parts():
    with pytest.raises(
        ValueError, match=r"write a dict with a list for each part that has names, .*\{'table': \[...\]\}"
    ):
        explained(run=metfa.Run(feature_names=["a", "b", "c"]))
    with pytest.raises(ValueError, match="`feature_names` has names of 'tabel', which is no input"):
        explained(run=metfa.Run(feature_names={"tabel": ["a", "b", "c"]}))
    with pytest.raises(ValueError, match=r"`feature_names\['table'\]` has 2 names, but an attribution has 3"):
        explained(run=metfa.Run(feature_names={"table": ["a", "b"]}))
    with pytest.raises(ValueError, match="`explainer` returned one map: write a list of names"):
        explained(lambda inputs, target: inputs["table"], run=metfa.Run(feature_names={"table": ["a", "b", "c"]}))


def test_regions_are_asked_of_a_part(result):
    halves = np.arange(20).reshape(4, 5) // 10
    for settings in ({"over": halves}, {"n_samples": metfa.Until(undecided=0.1, over=halves)}):
        with pytest.raises(TypeError, match=r"in `result\['image'\].over\(regions\)`"):
            explained(**settings)
    assert result["image"].over(halves).values.shape == (20, 3, 2)


def test_what_takes_one_map_says_how_to_take_one_part(result):
    one = lambda inputs, target: explainer(inputs, target=target)["table"]  # noqa: E731 - as the advice is written
    with pytest.raises(TypeError, match=r"`before` returned attributions of 2 parts, and a comparison takes one array"):
        metfa.compare(explainer, explainer, INPUTS, 0, noise=NOISE, rng=0)
    with pytest.raises(TypeError, match=r"`metfa.compare\(before\['image'\], after\['image'\]\)`"):
        metfa.compare(result, result)
    assert metfa.compare(one, one, INPUTS, 0, noise=NOISE, rng=0).values.shape == (10, 3, 3)
    assert not metfa.compare(result["table"], result["table"]).values.any()
    with pytest.raises(TypeError, match=r"a comparison takes one array: .*\['image'\]"):
        metfa.contrast(explainer, INPUTS, 0, 1, noise=NOISE, rng=0)
    models = [object, object()]
    for settings in ({}, {"of": "mean", "noise": NOISE, "n_samples": 5}):
        with pytest.raises(TypeError, match="a statement across models takes one array"):
            metfa.across_models(models, lambda model: explainer, INPUTS, 0, **settings)
    with pytest.raises(TypeError, match=r"an explainer made of it takes one array"):
        metfa.Smoothed(explainer, noise=lambda row, rng: row, rng=0)(INPUTS, 0)
    assert result["table"].across_inputs().values.shape == (3, 1, 3)


def test_the_figure_has_a_place_for_each_part(result):
    figure = result.plot(title="Both", index=2, threshold={"image": 100.0})
    image, table = figure.subfigs
    assert figure.get_suptitle() == "Both"
    assert image.get_suptitle().startswith("image: 20 features\npart 'image' of input 2 of 3; explained: class 0")
    assert table.get_suptitle().startswith("table: 3 features\npart 'table' of input 2 of 3")
    assert (len(image.axes), len(table.axes)) == (7, 1)
    assert "above or below 100? (alpha 0.05 a side, uncorrected; 20 pixels)" in image.legends[0].get_title().get_text()
    assert "above or below 0? (alpha 0.05 a side, uncorrected; 3 features)" in table.legends[0].get_title().get_text()
    assert image.axes[-1].get_ylim()[1] > 10 * table.axes[0].get_xlim()[1]  # each on a scale of its own
    assert next(label.get_text().split()[0] for label in table.axes[0].get_yticklabels()) == "age"


@pytest.mark.slow
def test_the_places_do_not_overlap_and_are_as_wide_as_they_need(result):
    figure = result.plot(index=2)
    figure.draw_without_rendering()
    image, table = (part.get_tightbbox() for part in figure.subfigs)
    assert 0 <= image.x0 < image.x1 < table.x0 < table.x1 <= figure.bbox.x1
    assert image.width > 1.2 * table.width  # 11.6 inches beside 8.5
    assert result._repr_html_().startswith("<img")


def test_a_part_that_cannot_be_drawn_is_named():
    inputs = {"image": np.ones((1, 3, 2, 2, 2)), "table": np.ones((1, 3))}
    found = explained(lambda inputs, target: inputs, inputs)
    with pytest.raises(ValueError, match=r"part 'image': "):
        found.plot()
    assert found._repr_html_().startswith("<pre>AttributionParts(")


def test_the_page_has_a_section_for_each_part(result, tmp_path):
    page = metfa.report.write(tmp_path / "page.html", {"Both": result.of_input(0)}).read_text()
    for part, count in (("image", 20), ("table", 3)):
        assert f">Both, part &#39;{part}&#39;</h2>" in page
        assert f"part &#39;{part}&#39;: threshold, shares and corrections are over its {count} features alone" in page


def test_parts_of_other_kinds_are_drawn_as_what_they_are(tmp_path):
    inputs = {"ecg": RNG.normal(size=(1, 2, 12)), "table": np.ones((1, 3))}
    noise = dict.fromkeys(inputs, metfa.noise.Gaussian(0.1))
    found = explained(
        lambda inputs, target: {"ecg": inputs["ecg"][:, 0], "table": inputs["table"] - 1}, inputs, noise=noise
    )
    kind = {"ecg": metfa.plot.Series(sampling_rate=4)}
    series, table = found.plot(kind=kind).subfigs
    assert "time (s)" in {ax.get_xlabel() for ax in series.axes}
    assert len(table.axes) == 1
    with pytest.raises(ValueError, match="`kind` has 'egc', which is no part: there are 'ecg', 'table'"):
        found.plot(kind={"egc": kind["ecg"]})
    with pytest.raises(TypeError, match=r"`kind` must be a dict .*: write `kind=\{'ecg': ...\}`"):
        found.plot(kind=kind["ecg"])
    for number, (results, given) in enumerate(((found, kind), ({"Both": found}, {"Both": kind}))):
        page = metfa.report.write(tmp_path / f"{number}.html", results, kind=given).read_text()
        assert 'class="result series"' in page
        assert 'class="result bars"' in page
    with pytest.raises(ValueError, match="`kind` has 'egc', which is no part"):
        found.report(tmp_path / "page.html", kind={"egc": kind["ecg"]})
    with pytest.raises(TypeError, match="`kind` of one map must be"):
        metfa.report.write(tmp_path / "page.html", {"Table": found["table"]}, kind={"Table": kind})


def test_layouts_balance_their_parts():
    layout = Layout((Part("image", (2,)), Part("table", (1,)), Part("mask", (1,))))
    rows = np.array([[1e6, -1e6, 4.0, 0.0], [1e6, 0.0, 0.0, 0.0]])
    assert np.allclose(layout.balanced(rows, rows)[0], [1 / 3, -1 / 3, 4 / 300, 0.0])
    assert layout.split(rows)["table"].base is not None
    assert not layout.balanced(0 * rows, 0 * rows).any()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Input Tensor")
def test_captum_on_a_model_of_two_inputs():
    torch, attr = pytest.importorskip("torch"), pytest.importorskip("captum.attr")
    from metfa.explainers import Gradient, from_captum, heatmap

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.image, self.table = torch.nn.Linear(3 * 4 * 4, 2), torch.nn.Linear(5, 2)

        def forward(self, image, table):
            return torch.tanh(self.image(image.flatten(1))) + self.table(table)

    torch.manual_seed(0)
    model, inputs = Both().eval(), (torch.rand(2, 3, 4, 4), torch.rand(2, 5))
    noise = metfa.noise.Uniform(0.1), metfa.noise.Gaussian(0.1)
    method = attr.IntegratedGradients(model, multiply_by_inputs=False).attribute
    found = metfa.explain(method, inputs, noise=noise, n_samples=12, rng=0)
    assert found.scores.shape == (2, 2)
    assert {name: part.feature_shape for name, part in found.items()} == {
        0: (3, 4, 4),
        1: (5,),
    }
    for place in range(2):
        alone = metfa.explain(
            lambda inputs, target, place=place: method(inputs, target=target)[place],
            inputs, list(found.target), noise=noise, n_samples=12, rng=0,
        )  # fmt: skip
        assert np.array_equal(found[place].values, alone.values.astype(found[place].values.dtype))
    with pytest.raises(ValueError, match=r"such as `channel_axis=\(1, None\)` for an image and a table"):
        metfa.explain(Gradient(model), inputs, noise=noise, rng=0)
    ours = metfa.explain(Gradient(model, channel_axis=(1, None)), inputs, noise=noise, rng=0)
    advised = metfa.explain(heatmap(attr.Saliency(model).attribute, channel_axis=(1, None)), inputs, noise=noise, rng=0)
    for place in range(2):
        np.testing.assert_allclose(ours[place].values, advised[place].values, atol=1e-6)
    maps = metfa.explain(heatmap(method, channel_axis=(1, None)), inputs, noise=noise, n_samples=12, rng=0)
    assert maps[0].feature_shape == (4, 4)
    assert maps[0].values.max() == 1 == maps[1].values.max()
    with pytest.raises(ValueError, match=r"has none for part 0, got 1: write .*`channel_axis=\(1, None\)`"):
        metfa.explain(heatmap(method), inputs, noise=noise, rng=0)
    named = from_captum(model, "IntegratedGradients", multiply_by_inputs=False, channel_axis=(1, None))
    by_name = metfa.explain(named, inputs, noise=noise, n_samples=12, rng=0)
    np.testing.assert_allclose(by_name[0].values, maps[0].values, atol=1e-6)
    leaf = inputs[0].clone().requires_grad_()
    assert named((leaf, inputs[1]), target=0)[0].requires_grad
    assert not inputs[1].requires_grad  # as it was
    random = from_captum(model, "ShapleyValueSampling", n_samples=2, channel_axis=(1, None))
    sampled = metfa.explain(random, inputs, noise=noise, n_samples=3, rng=0)
    assert np.array_equal(
        sampled[1].values, metfa.explain(random, inputs, noise=noise, n_samples=3, rng=0, batch_size=1)[1].values
    )
    maps.plot().canvas.draw()
