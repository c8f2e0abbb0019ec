"""Which place of the image, series or volume each token of a transformer has, seen in one forward pass.

A transformer for images cuts the image into patches by a convolution, lays its pixels out as a sequence, and puts
tokens without a place beside them: class tokens, distillation tokens, registers. The pixels of the convolution's output
(and of batch normalisations and poolings behind it) are numbered here, and the numbers go through the same functions as
the pixels. So neither the grid nor the tokens without a place are guessed from the length of the sequence.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from metfa.calls.functions_as_layers import name_of
from metfa.explainers._channel_axes import MOVES, NORMS, STAYS, clearly_other_aspect, on_axis_1

__all__ = ["Places", "Tokens"]

LAYS_OUT = MOVES | {"flatten", "unflatten", "expand", "squeeze", "unsqueeze", "getitem"}
RESHAPES = {"view", "reshape", "unflatten", "flatten"}
READS = NORMS | {"linear"}
ATTENTION = {"scaled_dot_product_attention", "multi_head_attention_forward"}


@dataclass(frozen=True)
class Tokens:
    """The places of a sequence of tokens on a grid, such as (rows, columns), row by row; -1: a token has none."""

    grid: tuple[int, ...]
    places: tuple[int, ...]

    @classmethod
    def behind_prefixes(cls, grid: tuple[int, ...], n: int) -> Tokens:
        """`n` tokens of which the last ones lie on the grid, in row-major order."""
        pixels = math.prod(grid)
        if pixels > n:
            raise ValueError(f"`patch_grid` {grid} has {pixels} patches, but the model has {n} tokens")
        return cls(grid, (-1,) * (n - pixels) + tuple(range(pixels)))

    @property
    def order(self) -> list[int]:
        """The tokens that have a place, in the order of the places."""
        return sorted((token for token, place in enumerate(self.places) if place >= 0), key=self.places.__getitem__)

    def on_grid(self, values: torch.Tensor) -> torch.Tensor:
        r"""Values of tokens (batch, tokens, \*more) on the grid, such as (batch, rows, columns, \*more)."""
        return values[:, self.order].unflatten(1, self.grid)

    def __call__(self, tokens: torch.Tensor) -> torch.Tensor:
        """Tokens (batch, tokens, channels) as a feature map with channels on axis 1."""
        return self.on_grid(tokens).movedim(-1, 1)


class Places(TorchFunctionMode):
    """Follows the pixels of the last convolution into sequences of tokens.

    Parameters
    ----------
    size : sequence of int, optional
        Height and width of the images; the sizes of series or volumes.
    n_axes : int
        The number of axes, where no size is given.
    """

    def __init__(self, size: Any = None, n_axes: int = 2) -> None:
        super().__init__()
        self.size = size
        self._n_axes = n_axes if size is None else len(size)
        self._on_axis_1 = on_axis_1(self._n_axes)
        self._numbers: Any = WeakIdKeyDictionary()  # of a tensor: the grid, and numbers of its pixels in its shape
        self._followed: dict[tuple[int, int], set[Tokens]] = defaultdict(set)  # by rows and tokens
        self._split: dict[tuple[int, int], set[Tokens]] = defaultdict(set)  # weaker: a table of positions is split, too
        self._read: Any = WeakIdKeyDictionary()  # of numbers: the tokens, or None
        self.n_attentions = 0  # so far

    def of(self, n_rows: int, n_tokens: int) -> Tokens | None:
        """The places of so many tokens; None where nothing, or not the same everywhere, was seen."""
        found = self._followed.get((n_rows, n_tokens)) or self._split.get((n_rows, n_tokens), set())
        return next(iter(found)) if len(found) == 1 else None

    def of_tensor(self, sequence: torch.Tensor) -> Tokens | None:
        """The places of these very tokens, if they were followed so far, else of so many tokens."""
        known = self._tokens(sequence) if sequence in self._numbers else None
        return known or self.of(*sequence.shape[:2])

    def follows(self, sequence: torch.Tensor) -> bool:
        """Whether this very tensor was followed, and is a sequence of tokens."""
        return sequence in self._numbers and self._tokens(sequence) is not None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, and note what it does to pixels."""
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        name, given = name_of(func), args[0] if args else kwargs.get("input")
        self.n_attentions += name in ATTENTION or (name == "softmax" and output.ndim > 2)
        if isinstance(output, torch.Tensor):
            if name in self._on_axis_1 and output.ndim == self._n_axes + 2:
                self._number(output)
            elif name == "cat":
                self._put_together(args, kwargs, output)
            elif name in LAYS_OUT | RESHAPES and isinstance(given, torch.Tensor):
                self._lay_out(func, name, given, args, kwargs, output)
            elif name in STAYS:
                self._carry((*args, *kwargs.values()), output)
        if name in READS and isinstance(given, torch.Tensor):
            self._read_off(given)
        return output

    def _number(self, output: torch.Tensor) -> None:
        grid = tuple(output.shape[2:])
        if output.shape[2:].numel() > 1:
            numbers = torch.arange(math.prod(grid), device=output.device).reshape(grid)
            self._numbers[output] = grid, numbers.expand(output.shape)

    def _lay_out(self, func: Any, name: str, given: Any, args: Any, kwargs: Any, output: torch.Tensor) -> None:
        if name in RESHAPES:
            self._note_split(given, output)
        if given not in self._numbers:
            return
        grid, numbers = self._numbers[given]
        func = torch.Tensor.reshape if name == "view" else func  # numbers of other strides may not be viewed
        try:
            moved = func(numbers, *args[1:], **{key: value for key, value in kwargs.items() if key != "input"})
        except (RuntimeError, TypeError, IndexError):  # numbers are no floats, and have other strides
            return
        if moved.shape == output.shape:
            self._numbers[output] = grid, moved

    def _note_split(self, given: torch.Tensor, output: torch.Tensor) -> None:
        """Tokens (batch, tokens, channels) that are used as (batch, height, width, channels), or made of such."""
        sequence, pixels = (given, output) if given.ndim == 3 else (output, given)
        if (sequence.ndim, pixels.ndim) != (3, self._n_axes + 2) or pixels.ndim == 3 or len(sequence) != len(pixels):
            return
        grid = tuple(pixels.shape[1:-1])
        same = sequence.shape[1] == math.prod(grid) > 1 and sequence.shape[2] == pixels.shape[-1]
        if same and not clearly_other_aspect(grid, self.size):
            tokens = Tokens.behind_prefixes(grid, math.prod(grid))
            self._split[len(sequence), sequence.shape[1]].add(tokens)

    def _put_together(self, args: Any, kwargs: Any, output: torch.Tensor) -> None:
        parts = args[0] if args else kwargs.get("tensors", ())
        axis = args[1] if len(args) > 1 else kwargs.get("dim", kwargs.get("axis", 0))
        known = {self._numbers[part][0] for part in parts if part in self._numbers}
        if output.ndim != 3 or axis not in (1, -2) or len(known) != 1:
            return
        numbers = [
            self._numbers[part][1] if part in self._numbers else torch.full(part.shape, -1, device=part.device)
            for part in parts
        ]
        self._numbers[output] = known.pop(), torch.cat(numbers, dim=1)

    def _carry(self, arguments: Any, output: torch.Tensor) -> None:
        for one in arguments:
            if isinstance(one, torch.Tensor) and one in self._numbers and one.shape == output.shape:
                self._numbers[output] = self._numbers[one]
                return

    def _read_off(self, sequence: torch.Tensor) -> None:
        """Tokens are seen where a layer works on each alone."""
        if sequence.ndim != 3 or sequence not in self._numbers:
            return
        tokens = self._tokens(sequence)
        if tokens is not None:
            self._followed[len(sequence), sequence.shape[1]].add(tokens)

    def _tokens(self, sequence: torch.Tensor) -> Tokens | None:
        grid, numbers = self._numbers[sequence]
        if numbers not in self._read:
            places = numbers[0, :, 0]
            kept = places[places >= 0]
            whole = len(kept) == math.prod(grid) == len(kept.unique())
            alike = whole and bool((numbers == places[None, :, None]).all())
            self._read[numbers] = Tokens(grid, tuple(places.tolist())) if alike else None
        return self._read[numbers]
