"""Commands on a saved result of several inputs."""

import numpy as np
import pytest

import metfa


@pytest.mark.slow
def test_parts_are_shown_and_reported_and_not_compared(metfa_command, tmp_path):
    inputs = {"image": np.random.default_rng(0).random((1, 4, 4)), "table": np.ones((1, 3))}
    noise = {"image": metfa.noise.Uniform(0.1), "table": metfa.noise.Gaussian(0.1)}
    result = metfa.explain(
        lambda inputs, target: {"image": np.eye(4) * inputs["image"], "table": inputs["table"] - 1},
        inputs, 0, noise=noise, n_samples=20, rng=0,
    )  # fmt: skip
    result.save(tmp_path / "both")
    done = metfa_command("show", "both", "--out", "views", "--correction", "holm")
    assert done.code == 0, done.err
    rows = [line.split(":", 1)[1].strip() for line in done.out.splitlines() if line.startswith("row:")]
    assert rows == ["part 'image'", "part 'table'"]
    assert {path.name for path in (tmp_path / "views").iterdir()} == {"figure.png", "report.html", "report.txt"}
    assert metfa_command("report", "both", "--out", "page.html").code == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "both, part &#39;image&#39;</h2>" in page
    assert "both, part &#39;table&#39;</h2>" in page
    assert (
        "has several parts: in Python write `result[name].over"
        in metfa_command("show", "both", "--regions", "superpixels").err
    )
    assert "compare each part, `metfa.compare(before[name]" in metfa_command("compare", "both", "both").err
