"""A trained BiLSTM with its vocabulary, and the one file that holds both: a .npz without pickles."""

from __future__ import annotations

import json
import math
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from metfa._base.validation import as_path, check_flag, positive_int
from metfa._base.writing import check_replaceable, new_file
from metfa.text.models._tokens import tokens_of
from metfa.text.models.bilstm import UNKNOWN, BiLSTM
from metfa.text.models.embedded import probabilities_of_rows

__all__ = ["TrainedBiLSTM", "read_model", "save_model"]

VERSION = 1
MAX_BYTES = 64 * 2**20  # of the file, and of its unpacked content
FIRST = "about.npy"  # the first part, by which such a file is known
MAX_HEADER = 4096  # of a part's .npy header
DAMAGE = (ValueError, TypeError, LookupError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error, struct.error)
SIZES = ("embedding_size", "n_units", "n_hidden")


@dataclass(frozen=True)
class TrainedBiLSTM:
    """A text classifier: a list of texts, or of lists of tokens -> probabilities (batch, classes), a NumPy array.

    A row's probabilities do not depend on the other rows of a call, except by rounding. It can be entered at its word
    vectors, see `metfa.text.models.EmbeddedTextModel`.

    Attributes
    ----------
    module : BiLSTM
        The network, which returns logits; ``load_model`` loads it in evaluation mode, on the CPU.
    vocabulary : tuple of str
        The tokens with ids 2, 3, ...; id 0 fills up short rows, id 1 stands for every other token.
    class_names : tuple of str
    """

    module: BiLSTM = field(repr=False)
    vocabulary: tuple[str, ...] = field(repr=False)
    class_names: tuple[str, ...]

    padded: ClassVar[bool] = True  # what fills up a row is never read

    def __call__(self, rows: Sequence[Any]) -> np.ndarray:
        """Probabilities (batch, classes) of a list of rows, float32."""
        return probabilities_of_rows(self, rows)

    def tokenize(self, row: Any) -> tuple[list[int], list[int | None]]:
        """Token ids of a row, and the index of the word that each belongs to."""
        tokens, words = tokens_of(row)
        return [self._ids.get(token, UNKNOWN) for token in tokens], words

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Word vectors (batch, length, size) of token ids (batch, length)."""
        return self.module.embedding(ids)

    def forward_embedded(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits (batch, classes) of word vectors; `mask` is true for those of the row."""
        return self.module.forward_embedded(embeddings, mask)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.vocabulary, start=UNKNOWN + 1)}


def save_model(model: TrainedBiLSTM, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a model to one .npz file: weights in half precision, vocabulary and class names as UTF-8.

    The same model gives the same bytes.

    Raises
    ------
    FileExistsError
        If `path` exists, and is no such file or `overwrite` is not given.
    """
    if not isinstance(model, TrainedBiLSTM):
        raise TypeError(f"`model` must be a TrainedBiLSTM, got {type(model).__name__}")
    path = as_path(path, "path")
    check_replaceable(path, FIRST if check_flag(overwrite, "overwrite") else None, kind="file")
    module = model.module
    about = {
        "version": VERSION,
        "class_names": list(model.class_names),
        "embedding_size": module.embedding.embedding_dim,
        "n_units": module.lstm.hidden_size,
        "n_hidden": module.hidden.out_features,
    }
    weights = {name: _halved(name, value) for name, value in module.state_dict().items()}
    texts = {"about": json.dumps(about), "vocabulary": "\n".join(model.vocabulary)}
    encoded = {name: np.frombuffer(text.encode(), dtype=np.uint8) for name, text in texts.items()}
    with new_file(path, replace=overwrite) as file:
        np.savez_compressed(file, allow_pickle=False, **encoded, **weights)
    return path


def _halved(name: str, weight: torch.Tensor) -> np.ndarray:
    halved = weight.detach().half().cpu().contiguous().numpy()
    if not np.isfinite(halved).all():
        raise ValueError(f"`model.module.{name}` holds numbers that half precision cannot store: NaN, or above 65504")
    return halved


def read_model(path: Path) -> TrainedBiLSTM:
    """Read a file of `save_model`; before a part is read, it is checked against what the network needs.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not such a file, is damaged or too large, or holds anything else.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, more than the {MAX_BYTES} that are read")
    try:
        with zipfile.ZipFile(path) as archive:
            return _assembled(archive)
    except DAMAGE as error:
        raise ValueError(f"{path} is no text model of metfa, or is damaged: {error}") from error


def _assembled(archive: zipfile.ZipFile) -> TrainedBiLSTM:
    unpacked = sum(part.file_size for part in archive.infolist())
    if unpacked > MAX_BYTES:
        raise ValueError(f"it unpacks to {unpacked} bytes, more than the {MAX_BYTES} that are read")
    about = json.loads(_text(archive, "about"))
    if not isinstance(about, dict) or about.get("version") != VERSION:
        raise ValueError(f"its version is not {VERSION}, which is what this version of metfa reads")
    names = about["class_names"]
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names) and 2 <= len(names) <= 1000):
        raise ValueError("`class_names` are no list of texts")
    sizes = {name: positive_int(about[name], name) for name in SIZES}
    vocabulary = tuple(_text(archive, "vocabulary").split("\n"))
    if len(set(vocabulary)) != len(vocabulary) or "" in vocabulary:
        raise ValueError("its vocabulary holds a token twice, or an empty one")
    with torch.device("meta"):  # sizes without memory
        module = BiLSTM(len(vocabulary) + UNKNOWN + 1, len(names), **sizes)
    expected = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    found = [name.removesuffix(".npy") for name in archive.namelist()]
    if sorted(found) != sorted([*expected, "about", "vocabulary"]):
        raise ValueError(f"it holds {sorted(found)!r:.200} instead of a BiLSTM's weights and vocabulary")
    weights = {name: _weight(archive, name, shape) for name, shape in expected.items()}
    module.load_state_dict(weights, strict=True, assign=True)
    return TrainedBiLSTM(module.eval(), vocabulary, tuple(names))


def _text(archive: zipfile.ZipFile, name: str) -> str:
    return _array(archive, name, np.dtype(np.uint8), None).tobytes().decode()


def _weight(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> torch.nn.Parameter:
    values = _array(archive, name, np.dtype(np.float16), shape).astype(np.float32)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds NaN or infinity")
    return torch.nn.Parameter(torch.from_numpy(values))


def _array(archive: zipfile.ZipFile, name: str, dtype: np.dtype, shape: tuple[int, ...] | None) -> np.ndarray:
    """One part. It is read if its header is as expected, and no more is read than the archive has announced."""
    part = archive.getinfo(f"{name}.npy")
    if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed in an unknown way")
    with archive.open(part) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(f"{name} has a header of another version than 1.0")
        found, transposed, kind = np.lib.format.read_array_header_1_0(file, max_header_size=MAX_HEADER)
        if kind != dtype or (len(found) != 1 if shape is None else found != shape):
            raise ValueError(f"{name} is {kind} of shape {found}, not {dtype} of shape {shape or '(length,)'}")
        if transposed:
            raise ValueError(f"{name} is stored in Fortran order")
        data = file.read()
    if len(data) != math.prod(found) * dtype.itemsize:
        raise ValueError(f"{name} holds {len(data)} bytes, not the {math.prod(found) * dtype.itemsize} of its shape")
    return np.frombuffer(data, dtype=dtype).reshape(found)
