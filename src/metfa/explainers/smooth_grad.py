"""SmoothGrad: the gradient of noisy copies, averaged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch

from metfa._arrays import from_host, to_host
from metfa._base.validation import MOST_CALLS, check_flag, check_number, keep, one_of, positive_int
from metfa.calls.differentiation import weights_frozen
from metfa.calls.held import asks_a_model, hold, model_itself
from metfa.calls.targets import row_targets
from metfa.explainers.heatmaps import check_channel_axis, check_differentiable, finished, reduce_channels
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
    std : float
        Standard deviation of the normal noise, absolute, in the units of the inputs. The authors' code takes 0.15 of
        the input's range, which is this default for pixels in [0, 1]. (Captum's default is an absolute 1.0.)
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
    channel_axis: int | None = field(default=1, kw_only=True)
    n_perturbations: int = field(default=25, kw_only=True)
    std: float = field(default=0.15, kw_only=True)
    average: str = field(default="signed", kw_only=True)
    scale: bool = field(default=True, kw_only=True)
    rng: Any = field(default=None, kw_only=True, repr=False)

    model: ClassVar[property] = model_itself
    rows_independent = True  # for any model: no pass holds two rows
    differentiable = True

    def __post_init__(self) -> None:
        hold(self)
        check_channel_axis(self.channel_axis)
        keep(self, scale=check_flag(self.scale, "scale"))
        keep(self, n_perturbations=positive_int(self.n_perturbations, "n_perturbations", maximum=MOST_CALLS))
        keep(self, std=check_number(self.std, "std"))
        one_of(self.average, "average", ("signed", "absolute"))

    def __call__(
        self, inputs: torch.Tensor, target: Any = None, *, rngs: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        r"""Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, \*features)
            Floating point. Where they require a gradient, the maps are differentiable in them.
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.
        rngs : list of numpy.random.Generator, optional
            One generator for each row.

        Returns
        -------
        maps : torch.Tensor, (batch, \*features)
            float32 (or wider), in [0, 1] with `scale`.
        scores : torch.Tensor, (batch, classes)
            The model's scores of the inputs themselves, detached.
        """
        check_differentiable(inputs, self.channel_axis, "a gradient", self.model)
        generators = row_generators(inputs, rngs, self.rng)
        with torch.no_grad(), weights_frozen(self.model):
            scores = self.called(inputs.clone())  # a model may work in place on what it gets
        targets = row_targets(target, to_host(scores), len(inputs))
        rows = zip(inputs.split(1), targets, generators, strict=True)
        mean = torch.cat([self._mean_gradient(*row) for row in rows])
        return finished(reduce_channels(mean, self.channel_axis), scale=self.scale), scores

    def _mean_gradient(self, row: torch.Tensor, target: Any, rng: np.random.Generator) -> torch.Tensor:
        noise, clean = Gaussian(self.std), np.zeros(tuple(row.shape[1:]), np.float32)
        seeds = rng.integers(0, 2**63, self.n_perturbations)  # one a copy, so that a repeated batch has the same noise
        total: Any = 0

        def add(start: int, stop: int) -> None:
            nonlocal total
            drawn = np.stack([noise(clean, np.random.default_rng(seed)) for seed in seeds[start:stop]])
            copies = row + from_host(drawn, like=row)
            gradient, _ = self.called.gradient(copies, None if target is None else [target] * (stop - start))
            gradient = gradient if self.average == "signed" else gradient.abs()
            total = total + gradient.sum(0, keepdim=True, dtype=torch.promote_types(gradient.dtype, torch.float32))

        self.called.in_batches(self.n_perturbations, row, add)
        return total / self.n_perturbations
