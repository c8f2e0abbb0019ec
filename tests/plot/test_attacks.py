"""Figure of an attack: which panels, what they say, and what they refuse."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg

import metfa
from metfa import attacks
from metfa.explainers import CAM
from metfa.plot import attack


def found(channels=3, upsample=True, defended=True, steps=5):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = torch.nn.Conv2d(channels, 6, 3, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1)
        model = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(6, 3)).eval()
    images = torch.rand(2, channels, 18, 24, generator=torch.Generator().manual_seed(1))
    explainer = CAM(model, upsample=upsample)
    drawn = torch.zeros(CAM(model, upsample=upsample)(images)[0].shape[1:])
    drawn[:4, :4] = 1
    noise = metfa.noise.Uniform(0.05, bounds=(0, 1))
    defence = metfa.Smoothed(explainer, noise=noise, n_samples=6) if defended else None
    return attacks.manipulate(
        model,
        explainer,
        images,
        target_map=drawn,
        defence=defence,
        settings="dombrowski",
        n_steps=steps,
        step_size=0.01,
        check_every=1,
        rng=0,
    )


def titles(fig):
    return [ax.get_title() for ax in fig.axes if ax.get_title()]


def drawn(fig):
    buffer = io.BytesIO()
    FigureCanvasAgg(fig).print_png(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(("channels", "upsample", "defended"), [(1, True, True), (3, False, True), (3, True, False)])
@pytest.mark.slow
def test_panels(channels, upsample, defended):
    result = found(channels, upsample, defended)
    fig = result.plot(index=1)
    assert len(drawn(fig)) > 10_000
    names = [title.splitlines()[0] for title in titles(fig)]
    smoothed = (["smoothed"], ["m4, smoothed"]) if defended else ([], [])
    first = f"map for class {result.explained[1]}"
    expected = ["clean", "target map m1", first, *smoothed[0], "terms of the loss"]
    second = first if defended else "m2"
    expected += ["attacked", "change (grey: none), at most", second, *smoothed[1], "distance to the target map"]
    assert names == expected
    said = titles(fig)[names.index(first)]
    assert said.endswith(f"{result.distances['clean'][1]:.4f} from m1")
    knows = "; the attacker knows the defence" if defended else ""
    verdict = "succeeded" if result.success[1] else "failed"
    assert fig.get_suptitle() == f"manipulation of CAM: {verdict}{knows}"
    assert attack(result, title="a $ title").get_suptitle() == "a $ title"


def test_nothing_changed_is_grey():
    fig = attack(found(steps=0))
    panel = next(ax for ax in fig.axes if ax.get_title().startswith("change"))
    np.testing.assert_array_equal(panel.images[0].get_array(), 0.5)
    assert "failed" in fig.get_suptitle()


def test_refusals():
    result = found()
    with pytest.raises(TypeError, match="must be an AttackResult, got int"):
        attack(3)
    with pytest.raises(ValueError, match=r"`index` must lie in 0\.\.1, got 2"):
        attack(result, index=2)
    with pytest.raises(ValueError, match=r"\(height, width\) to be drawn, got \(4,\)"):
        attack(replace(result, target_map=np.ones((2, 4))))


def test_signed_maps_have_a_symmetric_scale():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 2, 3), torch.nn.SiLU(), torch.nn.Flatten(), torch.nn.Linear(72, 2)
        )
    images = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    signed = lambda x, target: metfa.Called(model.eval()).gradient(x, target)[0].sum(1)  # noqa: E731
    result = attacks.manipulate(
        model.eval(), signed, images, target_map=torch.ones(8, 8), n_steps=2, step_size=0.1, rng=0
    )
    fig = attack(result)
    bar = next(ax for ax in fig.axes if ax.get_ylabel() == "attribution score")
    low, high = bar.get_ylim()
    assert low == -high
