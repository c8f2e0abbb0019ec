"""Boxes and segmentations: which features, names, files, maps of other sizes, and what is refused."""

import numpy as np
import pytest
import torch
from PIL import Image

from metfa import regions

LABELS = np.array([[0, 0, 7, 7], [0, 3, 3, 255], [-1, 3, 3, 255]])
CUP, SPOON = LABELS == 3, (LABELS == 3) | (LABELS == 7)


class TestBoxes:
    @pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
    def test_as_pillow_crops(self, kind):
        corners = [(1, 0, 4, 2), (3, 2, 5, 3)]
        picture = np.arange(15).reshape(3, 5).astype(np.uint8)
        found = regions.boxes((3, 5), kind(corners))
        for mask, box in zip(found.as_masks(), corners, strict=True):
            np.testing.assert_array_equal(picture[mask], np.asarray(Image.fromarray(picture).crop(box)).ravel())
        assert found.names == ("rows 0-1, columns 1-3", "row 2, columns 3-4")

    def test_may_overlap_and_hold_all_channels(self):
        found = regions.boxes((3, 4, 4), [(0, 0, 3, 3), (1, 1, 4, 4)], ["a", "b"], against="rest")
        assert found.as_masks().sum(axis=0)[1].tolist() == [[1, 1, 1, 0], [1, 2, 2, 1], [1, 2, 2, 1], [0, 1, 1, 1]]
        assert found.feature_shape == (3, 4, 4)

    @pytest.mark.parametrize(
        ("corners", "error", "message"),
        [
            ([(0, 0, 2, 2), (2, 1, 2, 3)], ValueError, r"box 1, .* = \(2, 1, 2, 3\), is empty"),
            ([(0, 0, 6, 2)], ValueError, r"box 0, .* does not lie within maps of 3 rows and 5 columns"),
            ([(-1, 0, 2, 2)], ValueError, "does not lie within maps of 3 rows"),
            ([(0, 2, 2, 4)], ValueError, "does not lie within maps of 3 rows"),
            ([], ValueError, r"`corners` must hold \(left, top, right, bottom\) for each box, .* got shape \(0,\)"),
            ((0, 0, 2, 2), ValueError, r"got shape \(4,\)"),
            ([(0.0, 0.0, 2.5, 2.0)], TypeError, "whole numbers of pixels, got float64: round a detector's boxes"),
        ],
    )
    def test_what_is_refused(self, corners, error, message):
        with pytest.raises(error, match=message):
            regions.boxes((3, 5), corners)

    def test_advice_on_fractions_works(self):
        found = [(0.2, 0.1, 2.3, 1.9)]
        for whole in (torch.tensor(found).round().int(), np.rint(np.array(found)).astype(int)):
            assert regions.boxes((3, 5), whole).as_masks().sum() == 4

    def test_each_box_needs_a_name(self):
        with pytest.raises(ValueError, match="`names` must name each of the 1 regions, got 2"):
            regions.boxes((3, 5), [(0, 0, 2, 2)], ["a", "b"])


class TestObjects:
    def test_of_labels(self):
        found = regions.objects(LABELS)
        assert found.names == ("label 0", "label 3", "label 7", "label 255")
        for mask, label in zip(found.as_masks(), (0, 3, 7, 255), strict=True):
            np.testing.assert_array_equal(mask, label == LABELS)

    def test_without_those_that_are_no_objects(self):
        found = regions.objects(torch.from_numpy(LABELS), {3: "cup"}, ignore=(0, 255))
        assert found.names == ("cup", "label 7")
        np.testing.assert_array_equal(found.masks[0], [[-1, -1, 1, 1], [-1, 0, 0, -1], [-1, 0, 0, -1]])

    def test_names_of_classes(self):
        classes = tuple("abcdefgh")
        assert regions.objects(LABELS, classes, ignore=255).names == ("a", "d", "h")
        with pytest.raises(ValueError, match="`names` must name each label up to 255, got 8 names: give a dict"):
            regions.objects(LABELS, classes)

    @pytest.mark.parametrize(
        "masks",
        [{"cup": CUP, "spoon": SPOON}, [CUP, SPOON], np.stack([CUP, SPOON]), torch.from_numpy(np.stack([CUP, SPOON]))],
        ids=["dict", "list", "array", "tensor"],
    )
    def test_of_masks_that_overlap(self, masks):
        found = regions.objects(masks)
        assert found.names == (("cup", "spoon") if isinstance(masks, dict) else ("mask 0", "mask 1"))
        np.testing.assert_array_equal(found.as_masks(), [CUP, SPOON])

    def test_of_one_mask(self):
        np.testing.assert_array_equal(regions.objects(CUP, ["cup"]).as_masks(), [CUP])

    def test_of_files(self, tmp_path):
        grey = np.where(LABELS < 0, 9, LABELS).astype(np.uint8)
        palette = Image.fromarray(grey).convert("P")
        palette.putdata(grey.ravel().tolist())
        palette.putpalette([200, 0, 0] * 256)  # all of one colour: the index counts
        pictures = {
            "palette": palette,
            "grey": Image.fromarray(grey),
            "deep": Image.fromarray(grey.astype(np.uint16)),
        }
        for name, picture in pictures.items():
            picture.save(tmp_path / f"{name}.png")
            for given in (tmp_path / f"{name}.png", str(tmp_path / f"{name}.png"), picture):
                np.testing.assert_array_equal(regions.objects(given, ignore=9).masks, regions.objects(LABELS).masks)
        Image.fromarray(CUP).save(tmp_path / "black and white.png")
        assert regions.objects(tmp_path / "black and white.png").names == ("label 0", "label 1")

    def test_files_that_are_refused(self, tmp_path):
        grey = Image.fromarray(LABELS.astype(np.uint8))
        grey.save(tmp_path / "mask.jpg")
        with pytest.raises(ValueError, match=r"mask\.jpg is a JPEG, which changes the levels beside each edge"):
            regions.objects(tmp_path / "mask.jpg")
        grey.convert("RGB").save(tmp_path / "mask.png")
        with pytest.raises(ValueError, match=r"mask.png holds colours \(mode RGB\), not labels"):
            regions.objects(tmp_path / "mask.png")
        (tmp_path / "text.png").write_text("no picture")
        with pytest.raises(ValueError, match=r"text\.png cannot be read as an image"):
            regions.objects(tmp_path / "text.png")
        with pytest.raises(FileNotFoundError, match="no such image"):
            regions.objects(tmp_path / "none.png")

    @pytest.mark.parametrize("more", [{}, {"exif": b"Exif\0\0more"}])  # the latter is of the extended form
    def test_a_lossless_webp_of_grey_levels_is_a_mask(self, more, tmp_path):
        labels = np.kron([[0, 1], [2, 200]], np.ones((4, 4), int)).astype(np.uint8)
        Image.fromarray(labels).save(tmp_path / "mask.webp", lossless=True, **more)
        assert regions.objects(tmp_path / "mask.webp") == regions.objects(labels.astype(int))
        Image.fromarray(labels).save(tmp_path / "lossy.webp", quality=90, **more)
        with pytest.raises(ValueError, match=r"lossy\.webp is a lossy WebP, which changes .*: save it as PNG"):
            regions.objects(tmp_path / "lossy.webp")
        with Image.open(tmp_path / "mask.webp") as picture, pytest.raises(ValueError, match="give its path"):
            regions.objects(picture)
        Image.fromarray(np.dstack([labels, labels * 0, labels])).save(tmp_path / "colours.webp", lossless=True)
        with pytest.raises(ValueError, match="holds colours"):
            regions.objects(tmp_path / "colours.webp")

    def test_too_large_a_file_is_refused(self, tmp_path):
        Image.new("1", (9500, 9500)).save(tmp_path / "large.png")
        with pytest.raises(ValueError, match=r"large\.png is too large"):
            regions.objects(tmp_path / "large.png")

    def test_on_a_finer_map(self):
        found = regions.objects(LABELS, of=(2, 6, 12))
        np.testing.assert_array_equal(found.as_masks()[1], [np.kron(CUP, np.ones((2, 3), bool))] * 2)

    def test_on_a_coarser_map_only_whole_cells(self):
        fine = np.kron(LABELS, np.ones((2, 3), int))
        np.testing.assert_array_equal(regions.objects(fine, of=(3, 4)).masks, regions.objects(LABELS).masks)
        masks = np.kron(np.stack([CUP, SPOON]), np.ones((2, 3), bool))
        np.testing.assert_array_equal(regions.objects(masks, of=(3, 4)).as_masks(), [CUP, SPOON])
        np.testing.assert_array_equal(
            regions.objects(fine, of=(6, 4)).as_masks()[1], np.kron(CUP, np.ones((2, 1), bool))
        )
        fine[0, 0] = 3
        with pytest.raises(
            ValueError, match=r"6 x 12 pixels does not fit maps of 3 x 4, where cells .* `labels\[1::2, 1::3\]`"
        ):
            regions.objects(fine, of=(3, 4))
        np.testing.assert_array_equal(regions.objects(fine[1::2, 1::3], of=(3, 4)).masks, regions.objects(LABELS).masks)

    def test_sizes_that_do_not_divide_are_refused(self):
        with pytest.raises(ValueError, match=r"3 x 4 pixels does not fit maps of 4 x 4: .* `resize\(\(4, 4\), 0\)`"):
            regions.objects(LABELS, of=(4, 4))
        resized = Image.fromarray(LABELS.astype(np.uint8)).resize((4, 4), 0)
        assert regions.objects(resized, of=(4, 4)).feature_shape == (4, 4)

    @pytest.mark.parametrize(
        ("segmentation", "settings", "error", "message"),
        [
            (LABELS / 2, {}, TypeError, r"got float64: of class scores .* `scores.argmax\(0\)`"),
            (LABELS[0], {}, ValueError, r"`segmentation` must be labels .* got int64 of shape \(4,\)"),
            (LABELS[None], {}, ValueError, r"got int64 of shape \(1, 3, 4\)"),
            (LABELS[:0], {}, ValueError, r"`segmentation` has no pixels: shape \(0, 4\)"),
            (np.full((2, 2), -1), {}, ValueError, r"`segmentation` holds no object: its labels are \[-1\]"),
            (CUP * 3, {"ignore": [0, 3]}, ValueError, r"holds no object: its labels are \[0, 3\], `ignore`=\[0, 3\]"),
            (CUP & False, {}, ValueError, "'mask 0' has no features"),
            (CUP, {"ignore": 0}, ValueError, "`ignore` names labels, but `segmentation` holds masks"),
            (LABELS, {"ignore": "0"}, TypeError, "`ignore` must be a label or a sequence of labels, got str: '0'"),
            ([CUP, SPOON[:2]], {}, ValueError, r"masks of one size, got \[\(3, 4\), \(2, 4\)\]"),
            ({"cup": LABELS}, {}, TypeError, "must hold masks of bool .* got int64 .* `mask > 0`"),
            ({"cup": CUP}, {"names": ["a"]}, ValueError, "`names` must be left out where `segmentation` is a dict"),
            ({3: CUP}, {}, TypeError, "`segmentation` must be a list of texts, but holds int: 3"),
            ({}, {}, ValueError, "`segmentation` must hold at least one mask, got none"),
            (LABELS, {"names": {"cup": 3}}, TypeError, "`names` must be an integer, got str: 'cup'"),
            (LABELS, {"of": (12,)}, ValueError, r"got maps of shape \(12,\)"),
        ],
    )
    def test_what_is_refused(self, segmentation, settings, error, message):
        with pytest.raises(error, match=message):
            regions.objects(segmentation, **settings)
