"""LRP: the class score is passed back layer by layer, by zennit's rules or those of attention."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import nn

from metfa._arrays import to_host, widen
from metfa._base.lazy import needs_extra
from metfa._base.validation import check_flag, keep
from metfa._base.warnings import MetfaWarning, warn
from metfa.calls.differentiation import chosen_scores, weights_frozen
from metfa.calls.held import asks_a_model, hold, model_itself, rows_as_the_model
from metfa.calls.no_gradient import gradient_expected
from metfa.calls.parts import asked_scores
from metfa.calls.row_dependence import row_by_row
from metfa.calls.targets import row_targets
from metfa.explainers._composites import (
    BOXED,
    PAPER,
    box_at_first_layer,
    box_of,
    check_bounds,
    composite_named,
    composite_names,
)
from metfa.explainers._leaves import Leaves
from metfa.explainers._relevance import RelevancePass
from metfa.explainers._ruled_pass import RuledPass
from metfa.explainers._supported_layers import check_layers
from metfa.explainers.heatmaps import check_channel_axis, check_differentiable, finished
from metfa.explainers.shares import LOST, Shares

__all__ = ["LRP"]

CONSERVATIVE = {"attnlrp": False, "cplrp": True}  # whether the weights of attention get no relevance


@asks_a_model
@dataclass(frozen=True)
class LRP:
    r"""Layer-wise relevance propagation (Bach et al. 2015), by zennit's rules or by those of attention.

    The score of the class is passed back layer by layer. Each unit's share is divided among its inputs according to
    their contributions. The default is the setting of Dombrowski et al. 2019 ("Explanations can be manipulated and
    geometry is to blame"; pankessel/adv_explanation_ref, ``src/nn/networks.py``), which the paper explains and attacks.

    Parameters
    ----------
    called : torch.nn.Module or Called
        Model, or a `metfa.Called` that says how it is asked: inputs (batch, channels, \*features) -> scores (batch,
        classes), before a softmax: logits. It may normalise its inputs itself, as loaded models do.
    composite : str or zennit.core.Composite
        Which rule each layer has:

        - ``"zbox-alpha1beta0"``: the first layer z-B (with `bounds`), every other convolution and linear layer
          alpha-beta with alpha 1 and beta 0, that is z+; stabiliser 1e-9, no biases in the denominators;
        - a name in ``zennit.composites.COMPOSITES``, such as ``"epsilon_plus_flat"`` or ``"epsilon_gamma_box"``, with
          zennit's own settings (stabiliser 1e-6, positive biases in the denominators);
        - ``"attnlrp"`` or ``"cplrp"``: for transformers, see Notes. Their authors' choice is "cplrp" for vision
          transformers and "attnlrp" for decoders of language;
        - any composite object. Its canonisers are applied to a copy of the model, made at each call.
    bounds : pair
        Lowest and highest value of the inputs, for rules with a box: numbers, or one number per channel. (0, 1) is
        right for models that take pixels; for one that takes normalised input give ``((0 - mean) / std,
        (1 - mean) / std)``.
    scale : bool
        True: the absolute relevance, summed over channels, each map scaled to [0, 1] by its smallest and largest value
        (the reference divides by the map's sum instead, which looks the same). False: the relevance itself, with its
        sign, summed over channels.
    channel_axis : int or None
        Axis of the channels, at least 1 (axis 0 is the batch); None where there are none (tables).

    Notes
    -----
    *Conservation.* Without biases, and up to the stabiliser, the relevance of the inputs adds up to the class score.
    A unit that is active only because of its bias (z+: it has no positive contribution) keeps its relevance. Depthwise
    filters whose weights are all negative are such units: in EfficientNet-Lite0, 4 % of the cat's score arrive at the
    pixels.

    *Steps between layers* are seen too. Additions (residual connections) and averages divide relevance in
    proportion; max pooling gives it to the winner; a step that multiplies or shifts each value by a constant, such as a
    normalisation of the pixels, passes it on unchanged, and so do monotone activations. Functions of torch are treated
    as the modules that do the same. Anything else (GELU, attention, products of activations, ...) is refused by name;
    for transformers, see below. A module may be called more than once. Custom autograd functions cannot be seen: there
    the gradient is used.

    *Batch normalisation* right after a convolution or linear layer is merged into it; elsewhere (before the
    convolution) it passes relevance unchanged. The model itself is never changed, and scores are its own.

    *The box of z-B*: the images of lowest and of highest values are followed to the first layer that is called. So
    normalisation, padding and the order of channels are accounted for.

    Half-precision models are explained as a copy in float32: the stabiliser is too small for half precision.

    *Transformers.* "attnlrp" (Achtibat et al. 2024) and "cplrp" (Ali et al. 2022) are rules for whatever a model calls:
    attention (fused, written out, or `torch.nn.MultiheadAttention`), softmax, normalisations (their spread is a
    constant), activations that are 0 at 0 (the factor f(x) / x is a constant), gates, sums. No class is patched, and no
    attention is switched. In "attnlrp" the factors of each product share equally; in "cplrp" the weights of attention
    and gates are constants. Linear layers and convolutions have the rule epsilon for epsilon to 0, so that on a network
    of rectifiers both are gradient x normalised input. `bounds` has no meaning here.

    *The relevance of the pixels is not the score.* Class and register tokens, positions, biases and, in "attnlrp", the
    softmax keep their parts, often most of it: `shares` gives them.

    Composites that only change gradients (``"guided_backprop"``, ``"deconvnet"``, ``"beta_smooth"``) give that
    gradient, times the score.

    References
    ----------
    .. [1] Achtibat et al., "AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for Transformers", 2024,
       arXiv:2402.05602.
    .. [2] Ali et al., "XAI for Transformers: Better Explanations through Conservative Propagation", 2022,
       arXiv:2202.07304.

    Examples
    --------
    >>> import torch
    >>> from metfa.explainers import LRP
    >>> model = torch.nn.Sequential(
    ...     torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 4, 2)
    ... )
    >>> maps, scores = LRP(model.eval())(torch.rand(2, 3, 4, 4))
    >>> maps.shape, scores.shape
    (torch.Size([2, 4, 4]), torch.Size([2, 2]))
    """

    called: Any
    composite: Any = field(default=PAPER, kw_only=True)
    bounds: tuple[Any, Any] = field(default=(0.0, 1.0), kw_only=True)
    channel_axis: int | None = field(default=1, kw_only=True)
    scale: bool = field(default=True, kw_only=True)

    model: ClassVar[property] = model_itself
    rows_independent: ClassVar[property] = rows_as_the_model
    differentiable = True

    def __post_init__(self) -> None:
        hold(self, at_layers="LRP")
        keep(self, scale=check_flag(self.scale, "scale"))
        if not isinstance(self.model, nn.Module):
            raise TypeError(
                f"`model` must be a torch.nn.Module, got {type(self.model).__name__}: LRP looks at its layers"
            )
        check_channel_axis(self.channel_axis)
        check_bounds(self.bounds)
        with needs_extra("LRP", "lrp"):
            from zennit.core import Composite
        if isinstance(self.composite, str):
            if self.composite not in (*composite_names(), *CONSERVATIVE):
                names = ", ".join(map(repr, (*composite_names(), *CONSERVATIVE)))
                raise ValueError(f"`composite` must be one of {names}, or a zennit composite, got {self.composite!r}")
        elif not isinstance(self.composite, Composite):
            raise TypeError(
                f"`composite` must be a name or a zennit.core.Composite, got {type(self.composite).__name__}: "
                f"{self.composite!r}"
            )

    def __call__(self, inputs: torch.Tensor, target: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
        r"""Maps and scores of a batch.

        Parameters
        ----------
        inputs : torch.Tensor, (batch, channels, \*features)
            Floating point, within `bounds`. Where they require a gradient, the maps are differentiable in them.
        target : int, sequence or tensor, optional
            Class of each row; None: the predicted one.

        Returns
        -------
        maps : torch.Tensor, (batch, \*features)
            float32 (or wider), in [0, 1] with `scale`.
        scores : torch.Tensor, (batch, classes)
            The model's scores, detached.

        Raises
        ------
        ValueError
            If the model has layers or steps for which there is no rule (each is named), or relevance is not finite.
        """
        self._check(inputs)
        differentiable = inputs.requires_grad and torch.is_grad_enabled()
        with (
            torch.enable_grad(),
            weights_frozen(self.model),
            gradient_expected(self.model, inputs),
            self.called.precision(inputs),
        ):
            model, leaf = self._in_full_precision(inputs if differentiable else inputs.detach())
            leaf = self.called.laid_out(leaf)
            if not differentiable:
                leaf = leaf.requires_grad_()
            model, forward = self._pass_of(model, leaf, inputs)
            try:
                with forward.watching(leaf):
                    scores = asked_scores(model, leaf)
                if not scores.detach().isfinite().all():
                    raise ValueError("the model's scores are not finite, so there is no relevance to hand back")
                chosen = chosen_scores(scores, target, leaf)
                relevance = forward.relevance(chosen, leaf, create_graph=differentiable)
            finally:
                forward.close()
            dependent = self.called.row_look.finds_dependence(inputs.detach(), scores.detach())
        if dependent:
            return row_by_row(self, inputs, target)
        relevance = relevance.abs() if self.scale else relevance
        maps = relevance if self.channel_axis is None else relevance.sum(dim=self.channel_axis)
        return finished(maps, scale=self.scale), scores.detach()

    def shares(self, inputs: torch.Tensor, target: Any = None) -> Shares:
        r"""What the inputs and the model's own constants contribute to the score of each row's target.

        Only for the composites "attnlrp" and "cplrp", under which all together are the score.

        Parameters
        ----------
        inputs, target
            As in a call. Each row is asked about alone.

        Returns
        -------
        Shares
            Numbers (batch,): of the inputs, of tokens, positions and biases, and of the softmax of attention.

        Raises
        ------
        ValueError
            For other composites; or if the parts are not the score, as where a model uses autograd functions of its
            own, which nobody can see.
        """
        if self.composite not in CONSERVATIVE:
            raise ValueError(
                f'shares are known for `composite="attnlrp"` and `composite="cplrp"`, got {self.composite!r}'
            )
        self._check(inputs)
        with weights_frozen(self.model), torch.enable_grad():
            scores = self.called.scores(inputs.detach())
            rows = row_targets(target, to_host(scores), len(inputs))
            exact = "double" if inputs.dtype == torch.float64 else "single"
            close = LOST["bfloat16" if self.called.fast == "bfloat16" else exact]
            return Shares.of([self._shares_of(inputs[row : row + 1], rows[row]) for row in range(len(inputs))], close)

    def _shares_of(self, row: torch.Tensor, target: Any) -> tuple[float, float, dict[tuple[str, str], float]]:
        """Score, relevance of the inputs, and contributions of the constants."""
        with gradient_expected(self.model, row), self.called.precision(row):
            model, leaf = self._in_full_precision(row.detach())
            leaf = self.called.laid_out(leaf).requires_grad_()
            leaves = Leaves(model)
            forward = RuledPass(model, conservative=CONSERVATIVE[self.composite], leaves=leaves)
            with forward.watching(leaf):
                scores = asked_scores(model, leaf)
            chosen = chosen_scores(scores, None if target is None else [target], leaf)
            relevance = forward.relevance(chosen, leaf, create_graph=False)
        return float(chosen.detach()), float(relevance.double().sum()), leaves.contributions()

    def _pass_of(self, model: nn.Module, leaf: torch.Tensor, inputs: torch.Tensor) -> tuple[nn.Module, Any]:
        """The model that is asked, a copy where canonisers change it, and the pass under the composite's rules."""
        if self.composite in CONSERVATIVE:
            return model, RuledPass(model, conservative=CONSERVATIVE[self.composite])
        composite = self._composite_of(model, leaf)
        if composite.canonizers:
            model = deepcopy(model)
            for canonizer in composite.canonizers:
                canonizer.apply(model)
        check_layers(model, composite)
        return model, RelevancePass(model, composite, lambda: self.called.precision(inputs))

    def _in_full_precision(self, inputs: torch.Tensor) -> tuple[nn.Module, torch.Tensor]:
        halves = (torch.float16, torch.bfloat16)
        if any(parameter.dtype in halves for parameter in self.model.parameters()):
            return deepcopy(self.model).float(), widen(inputs)
        return self.model, inputs

    def _composite_of(self, model: nn.Module, inputs: torch.Tensor) -> Any:
        if self.composite not in BOXED:
            return self.composite if not isinstance(self.composite, str) else composite_named(self.composite)
        return composite_named(
            self.composite, *box_at_first_layer(model, *box_of(self.bounds, inputs, self.channel_axis))
        )

    def _check(self, inputs: Any) -> None:
        check_differentiable(inputs, self.channel_axis, "relevance", self.model)
        if self.composite not in BOXED:
            return
        low, high = box_of(self.bounds, inputs, self.channel_axis)
        with torch.no_grad():
            if ((inputs < low) | (inputs > high)).any():
                warn(
                    f"`inputs` reach from {float(inputs.min()):.3g} to {float(inputs.max()):.3g}, beyond `bounds` "
                    f"{self.bounds!r} of the box rule: clip the noise (`bounds=(0, 1)`), or say what the model takes",
                    MetfaWarning,
                )
