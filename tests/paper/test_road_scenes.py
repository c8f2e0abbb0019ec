"""Road scenes made on the spot: reading, counting, and the script as it is called."""

import csv
import re

import numpy as np
import pytest
import torch
from paper import espnet, road_scenes
from paper.road_scenes import CLASSES, accuracy_and_iou, confusion, read_scenes
from PIL import Image

HEIGHT, WIDTH = 16, 24


class Brightness(torch.nn.Module):
    """Scores whose best class is the red level / 10, so that a picture tells what is predicted."""

    def forward(self, images):
        level = (images[:, 0] * 25.5).round()
        return -(level[:, None] - torch.arange(12.0)[:, None, None]).abs()


def write(folder, labels, predicted, *, name="a"):
    Image.fromarray(labels.astype(np.uint8)).save(folder / f"{name}_label.png")
    levels = np.repeat(predicted[..., None] * 10, 3, axis=2).astype(np.uint8)
    Image.fromarray(levels).save(folder / f"{name}.png")
    return {"file": f"{name}.png", "label_file": f"{name}_label.png"} | {
        f"px_{known}": int((labels == place).sum()) for place, known in enumerate(CLASSES)
    }


def index(folder, rows):
    with (folder / "index.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def two_scenes(tmp_path):
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 12, (2, 2, HEIGHT, WIDTH))
    index(tmp_path, [write(tmp_path, *drawn[i], name=f"scene{i}") for i in range(2)])
    return tmp_path, *drawn.swapaxes(0, 1)


def test_reads(two_scenes):
    folder, labels, predicted = two_scenes
    scenes = read_scenes(folder)
    assert [scene.name for scene in scenes] == ["scene0", "scene1"]
    for scene, its, seen in zip(scenes, labels, predicted, strict=True):
        np.testing.assert_array_equal(scene.labels(), its)
        np.testing.assert_array_equal(scene.pixels(), np.float32(np.stack([seen * 10] * 3)) / np.float32(255))
        assert list(scene.n_pixels.values()) == np.bincount(its.ravel(), minlength=12).tolist()


def test_confusion_counts_one_by_one(two_scenes):
    folder, labels, predicted = two_scenes
    expected = np.zeros((12, 12), dtype=int)
    for label, answer in zip(labels.ravel(), predicted.ravel(), strict=True):
        expected[label, answer] += 1
    np.testing.assert_array_equal(confusion(Brightness(), read_scenes(folder)), expected)


def test_accuracy_and_iou_by_hand():
    counts = torch.zeros(12, 12, dtype=torch.int64)
    counts[0, 0], counts[0, 1], counts[1, 1] = 6, 2, 3
    counts[1, 11] = 1  # taken for void: wrong
    counts[11, 0] = 100  # not labelled: left out
    accuracy, iou = accuracy_and_iou(counts)
    assert accuracy == 9 / 12
    np.testing.assert_allclose(iou[:2], [6 / 8, 3 / 6])
    assert iou.shape == (11,)
    assert iou[2:].isnan().all()


@pytest.mark.parametrize("name", ["../a.png", "/a.png", "x/a.png", "..", ""])
def test_names_of_files_elsewhere(tmp_path, name):
    row = write(tmp_path, np.zeros((8, 8)), np.zeros((8, 8)))
    index(tmp_path, [row | {"label_file": name}])
    with pytest.raises(ValueError, match=re.escape(f"names {name!r}")):
        read_scenes(tmp_path)


def test_unknown_class(tmp_path):
    index(tmp_path, [write(tmp_path, np.full((8, 8), 12), np.zeros((8, 8)))])
    with pytest.raises(ValueError, match="holds the class 12; the last is 11, void"):
        read_scenes(tmp_path)[0].labels()


def test_labels_as_colours(tmp_path):
    index(tmp_path, [write(tmp_path, np.zeros((8, 8)), np.zeros((8, 8)))])
    Image.new("RGB", (8, 8)).save(tmp_path / "a_label.png")
    with pytest.raises(ValueError, match="got mode RGB"):
        read_scenes(tmp_path)[0].labels()


def test_labels_of_another_size(tmp_path):
    index(tmp_path, [write(tmp_path, np.zeros((8, 8)), np.zeros((8, 16)))])
    with pytest.raises(ValueError, match=r"a has \(8, 16\) pixels, its labels \(8, 8\)"):
        confusion(Brightness(), read_scenes(tmp_path))


def test_as_a_script(two_scenes, tmp_path, monkeypatch, capsys):
    folder, *_ = two_scenes
    torch.manual_seed(0)
    network = espnet.ESPNet()
    torch.save(network.state_dict(), tmp_path / "weights.pth")
    monkeypatch.setattr("sys.argv", ["road_scenes", "--data", str(folder), "--weights", str(tmp_path / "weights.pth")])
    monkeypatch.setattr("metfa.allocator.keep_freed_memory", lambda: None)  # it would last beyond this test
    road_scenes.main()
    printed = capsys.readouterr().out
    accuracy, iou = accuracy_and_iou(confusion(espnet.Preprocessed(network).eval(), read_scenes(folder)))
    assert printed.startswith(f"2 scenes: pixel accuracy {accuracy:.3f}, mean IoU {float(iou.nanmean()):.3f}\n")
    assert f"bicyclist: IoU {float(iou[10]):.3f}" in printed
    assert len(printed.splitlines()) == 12
