"""SmoothGrad: the gradient of noisy copies, averaged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import torch

from metfa._arrays import from_host, to_host
from metfa._base.validation import MOST_CALLS, check_flag, check_number, keep, one_of, positive_int
from metfa.calls.differentiation import weights_frozen
from metfa.calls.held import asks_a_model, hold, model_itself
from metfa.calls.parts import each, formed, joined, largest, named, of_rows, with_gradient
from metfa.calls.targets import row_targets
from metfa.explainers.heatmaps import check_channel_axis, check_differentiable, for_part, heat_maps
from metfa.noise import Gaussian
from metfa.sampling.randomised import row_generators

__all__ = ["SmoothGrad"]


@asks_a_model
@dataclass(frozen=True)
class SmoothGrad:
    r"""Gradients of noisy copies, averaged with their signs, then as `Gradient` (Smilkov et al. 2017).

    This is one explanation with randomness of its own. To know how far it can be trusted, sample it as any other:
    ``metfa.explain(SmoothGrad(model), ...)``. The mean map of ``metfa.explain(Gradient(model), ...)`` is another
    average, of scaled absolute gradients.

    Parameters
    ----------
    called, channel_axis, scale
        As for `Gradient`.
    n_perturbations : int
        Noisy copies for each row. 25 in the authors' code (``PAIR-code/saliency``); 5 in Captum, 20 in zennit.
    std : float, or tuple or dict of them
        Standard deviation of the normal noise, absolute, in the units of the inputs. The authors' code takes 0.15 of
        the input's range, which is this default for pixels in [0, 1]. (Captum's default is an absolute 1.0.) Several
        inputs have no unit in common, so they need one for each, as a tuple or dict like the inputs.
    average : {"signed", "absolute"}
        Average the gradients with their signs (the paper's formula), or their absolute values (Captum's
        ``NoiseTunnel`` over ``Saliency``).
    rng : int, numpy.random.Generator or None
        Seed of direct calls without `rngs`; `metfa.explain` passes its own generators.

    Examples
    --------
    >>> import torch
    >>> from metfa.explainers import SmoothGrad
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3)).eval()
    >>> maps, scores = SmoothGrad(model, rng=0)(torch.rand(2, 3, 2, 2), target=0)
    >>> maps.shape
    torch.Size([2, 2, 2])
    """

    called: Any
    channel_axis: Any = field(default=1, kw_only=True)
    n_perturbations: int = field(default=25, kw_only=True)
    std: Any = field(default=0.15, kw_only=True)
    average: str = field(default="signed", kw_only=True)
    scale: bool = field(default=True, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)

    model: ClassVar[property] = model_itself
    rows_independent = True  # for any model: no pass holds two rows
    n_forwards: ClassVar[property] = property(attrgetter("n_perturbations"))  # see `metfa.sampling.progress`
    forwards = "perturbations"
    differentiable = True

    def __post_init__(self) -> None:
        hold(self)
        check_channel_axis(self.channel_axis)
        keep(self, scale=check_flag(self.scale, "scale"))
        keep(self, n_perturbations=positive_int(self.n_perturbations, "n_perturbations", maximum=MOST_CALLS))
        keep(self, std=_checked_std(self.std))
        one_of(self.average, "average", ("signed", "absolute"))

    def __call__(self, inputs: Any, target: Any = None, *, rngs: Any = None) -> tuple[Any, torch.Tensor]:
        r"""Maps and scores of a batch.

        Parameters
        ----------
        inputs, target
            As for `Gradient`.
        rngs : list of numpy.random.Generator, optional
            One generator for each row.

        Returns
        -------
        maps : torch.Tensor, (batch, \*features), or tuple or dict of them
            As those of `Gradient`.
        scores : torch.Tensor, (batch, classes)
            The model's scores of the inputs themselves, detached.
        """
        check_differentiable(inputs, self.channel_axis, "a gradient", self.model, several=True)
        spreads = {name: for_part(self.std, name, "std", (0.15, 2.0)) for name in with_gradient(inputs)}
        generators = row_generators(inputs, rngs, self.rng)
        with torch.no_grad(), weights_frozen(self.model):
            scores = self.called(each(torch.clone, inputs))  # a model may work in place on what it gets
        targets = row_targets(target, to_host(scores), len(scores))
        rows = zip(range(len(scores)), targets, generators, strict=True)
        means = [self._mean_gradient(of_rows(inputs, row, row + 1), one, rng, spreads) for row, one, rng in rows]
        return heat_maps(joined(means), self.channel_axis, scale=self.scale), scores

    def _mean_gradient(self, row: Any, target: Any, rng: np.random.Generator, spreads: dict[Any, float]) -> Any:
        """Average over the noisy copies of one row; `spreads` are the standard deviations by part."""
        seeds = rng.integers(0, 2**63, self.n_perturbations)  # one a copy, so that a repeated batch has the same noise
        total: dict[Any, Any] = dict.fromkeys(spreads, 0)
        parts = named(row)

        def add(start: int, stop: int) -> None:
            noises = [np.random.default_rng(seed) for seed in seeds[start:stop]]
            copies = {
                name: _noisy(part, spreads[name], noises)
                if name in spreads
                else part.repeat_interleave(stop - start, 0)
                for name, part in parts.items()
            }
            targets = None if target is None else [target] * (stop - start)
            gradient, _ = self.called.gradient(formed(copies, row), targets)
            for name, part in named(gradient).items():
                part = part if self.average == "signed" else part.abs()
                total[name] = total[name] + part.sum(
                    0, keepdim=True, dtype=torch.promote_types(part.dtype, torch.float32)
                )

        self.called.in_batches(self.n_perturbations, largest(row), add)
        return formed({name: of_part / self.n_perturbations for name, of_part in total.items()}, row)


def _noisy(row: torch.Tensor, std: float, rngs: list[np.random.Generator]) -> torch.Tensor:
    """Copies of a row with noise, one from each generator."""
    noise, clean = Gaussian(std), np.zeros(tuple(row.shape[1:]), np.float32)
    return row + from_host(np.stack([noise(clean, rng) for rng in rngs]), like=row)


def _checked_std(std: Any) -> Any:
    if isinstance(std, Mapping):
        return {name: check_number(one, f"std[{name!r}]") for name, one in std.items()}
    if isinstance(std, tuple):
        return tuple(check_number(one, f"std[{place}]") for place, one in enumerate(std))
    return check_number(std, "std")
