"""Settings of an attack: every number, its unit, and its source."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from metfa._base.validation import MOST_CALLS, check_number, did_you_mean, keep, one_of, positive_int

__all__ = ["PRESETS", "AttackSettings", "settings_of"]

Weight = float | tuple[float, float]
CHOICES: dict[str, tuple[str | None, ...]] = {
    "step": ("adam", "sign"),
    "schedule": ("constant", "linear", "cosine"),
    "prediction_loss": ("probabilities", "cross-entropy", "margin"),
    "map_scale": ("given", "mean"),
    "softening": (None, "if needed", "softplus", "backward"),
    "noise_derivative": ("own", "identity"),
}


def _ends(weight: Any, name: str) -> tuple[float, float]:
    return (weight, weight) if not isinstance(weight, tuple | list) else _pair(weight, name)


def _pair(value: Any, name: str) -> tuple[Any, Any]:
    if not (isinstance(value, tuple | list) and len(value) == 2):
        raise TypeError(f"`{name}` must be a pair, got {value!r}")
    return value[0], value[1]


@dataclass(frozen=True, kw_only=True)
class AttackSettings:
    r"""The loss of an attack, and how it is minimised.

    The loss of an image x, which started as x0, is

    .. math:: \lambda_1 P(x) + \lambda_2 D(x) + \lambda_3 M(E(x)) + \lambda_4 M(E_M(x)),

    with E the explainer and :math:`E_M` the smoothed one, if the attacker knows it. Each image has a loss of its own.

    - P depends on `prediction_loss`. "probabilities": the squared distance of the probabilities to those of x0, summed
      over classes (this keeps a prediction). "cross-entropy": that of the class asked for. "margin": the best other
      logit minus the logit of the class asked for, plus `margin`, at least 0. The model is never softened for P.
    - D is the mean squared difference of the pixels.
    - M is the mean squared difference of the map and the target map over the map's pixels: of the maps as they are
      ("given"), or each first divided by the mean of its absolute values ("mean").

    So the weights depend on neither the size of the image nor that of the map. The paper publishes no
    :math:`\lambda`; the numbers here come from the authors of the attacks, in these units.

    Parameters
    ----------
    n_steps : int
        Steps on the whole loss.
    n_first_steps : int
        Earlier steps on the prediction alone, by the sign of the gradient, `first_step_size` each: ADV²'s first stage.
    step : {"adam", "sign"}
        Adam (.9, .999), or the sign of the gradient.
    step_size : float
        In pixel values (the range is 1).
    schedule : {"constant", "linear", "cosine"}
        How the step size goes from `step_size` to 0 over `n_steps`; "constant": it stays.
    epsilon : float or None
        Largest change of a pixel; every returned image stays within it and within [0, 1]. None: no limit.
    prediction_weight, distance_weight, map_weight, defence_weight : float or (float, float)
        :math:`\lambda_1` to :math:`\lambda_4`; a pair goes linearly from the first to the second.
    softening : {None, "if needed", "softplus", "backward"}
        Replacement of ReLU where maps are differentiated: softplus, whose beta grows exponentially between the two
        numbers of `beta`; or the soft backward pass of ADV². "if needed" is softplus, unless the explainer is CAM, LRP
        or MASK. Maps that count (those of the best image and of the result) are always the model's own.
    beta : (float, float)
        Beta of softplus at the first and at the last step.
    n_restarts : int
        Number of starts: the first at the image itself, the others at random places within `epsilon`. The best of all
        is kept.
    n_draws : int
        Number of smoothed maps, each under noise of its own, that an attacker who knows the defence averages at each
        step.
    noise_derivative : {"own", "identity"}
        How an attacker who knows the defence differentiates its noise: by its own derivative, or as if there were no
        noise (Athalye et al. 2018), for noises that round or leave the graph and so have no derivative.
    check_every : int
        Steps between two looks at the image with the unsoftened model; the best image seen is kept.
    unrolled : (int, int)
        For MASK: its own steps in each step of the attack, first without, then with derivatives.
    refresh_every : int
        For MASK: steps of the attack between two full optimisations of the mask.
    """

    n_steps: int
    step: Literal["adam", "sign"]
    step_size: float
    prediction_loss: Literal["probabilities", "cross-entropy", "margin"]
    prediction_weight: Weight = 1.0
    map_weight: Weight
    distance_weight: Weight = 0.0
    defence_weight: Weight | None = None
    map_scale: Literal["given", "mean"] = "given"
    margin: float = 10.0
    epsilon: float | None = None
    n_first_steps: int = 0
    first_step_size: float = 1 / 255
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    softening: Literal["if needed", "softplus", "backward"] | None = "if needed"
    beta: tuple[float, float] = (10.0, 100.0)
    n_restarts: int = 1
    n_draws: int = 1
    noise_derivative: Literal["own", "identity"] = "own"
    check_every: int = 25
    unrolled: tuple[int, int] = (4, 4)
    refresh_every: int = 50

    def __post_init__(self) -> None:
        for name, least in (("n_steps", 0), ("n_first_steps", 0), ("n_restarts", 1), ("n_draws", 1)):
            keep(self, **{name: positive_int(getattr(self, name), name, least, MOST_CALLS)})
        for name in ("check_every", "refresh_every"):
            keep(self, **{name: positive_int(getattr(self, name), name)})
        for name, choices in CHOICES.items():
            if getattr(self, name) is not None or None not in choices:
                one_of(getattr(self, name), name, [choice for choice in choices if choice is not None])
        keep(self, step_size=check_number(self.step_size, "step_size", above=0))
        keep(self, first_step_size=check_number(self.first_step_size, "first_step_size", above=0))
        keep(self, margin=check_number(self.margin, "margin"))
        if self.epsilon is not None:
            keep(self, epsilon=check_number(self.epsilon, "epsilon"))
            if self.epsilon > 1:
                raise ValueError(
                    f"`epsilon` is in pixel values in [0, 1], got {self.epsilon}: for levels of 255 write "
                    f"`{self.epsilon:g} / 255`, which is {self.epsilon / 255:.4f}"
                )
        elif self.n_restarts > 1:
            raise ValueError(
                f"`epsilon` must be a number for restarts, which begin at a random place within it, got None with "
                f"`n_restarts={self.n_restarts}`"
            )
        for name in ("prediction_weight", "map_weight", "distance_weight", "defence_weight"):
            if name != "defence_weight" or self.defence_weight is not None:
                for end in _ends(getattr(self, name), name):
                    check_number(end, name)
        for beta in _pair(self.beta, "beta"):
            check_number(beta, "beta", above=0)
        for count, least in zip(_pair(self.unrolled, "unrolled"), (0, 1), strict=True):
            positive_int(count, "unrolled", minimum=least)

    def weights(self, progress: float) -> dict[str, float]:
        """The four weights; `progress` goes from 0 to 1."""
        given = {
            "prediction": self.prediction_weight,
            "pixels": self.distance_weight,
            "map": self.map_weight,
            "defence": self.map_weight if self.defence_weight is None else self.defence_weight,
        }
        ends = {name: _ends(weight, name) for name, weight in given.items()}
        return {name: first + progress * (last - first) for name, (first, last) in ends.items()}

    @property
    def reach(self) -> float:
        """How far a pixel can come in all steps."""
        share = 1.0 if self.schedule == "constant" else 0.5
        return self.n_first_steps * self.first_step_size + share * self.n_steps * self.step_size


PRESETS = {
    # Metfa's own, to find out whether a map can be drawn, not to repeat others: steps by the sign, which could use up
    # the budget many times, and the squared distance of the maps as they are.
    "strong": AttackSettings(
        n_steps=200,
        step="sign",
        step_size=2 / 255,
        schedule="linear",
        prediction_loss="probabilities",
        map_weight=100.0,
        epsilon=8 / 255,
        check_every=10,
    ),
    # pankessel/adv_explanation_ref, src/run_attack.py: 1e11 MSE of maps that add up to 1, of 224 x 224 pixels, and 1e6
    # MSE of 1000 probabilities; Adam, 2e-4 on pixels in units of the deviation .226 (the mean of .229, .224 and .225).
    "dombrowski": AttackSettings(
        n_steps=1500,
        step="adam",
        step_size=2e-4 * 0.226,
        prediction_loss="probabilities",
        prediction_weight=1e6 / 1000,
        map_weight=1e11 / 224**4,
        map_scale="mean",
    ),
    # alps-lab/adv2, expr_attacks_fixed/cam_attack_acid.py.
    "adv2-cam": AttackSettings(
        n_first_steps=400,
        n_steps=1200,
        step="sign",
        step_size=1 / 255,
        prediction_loss="cross-entropy",
        map_weight=(5.0, 10.0),
        epsilon=0.031,
    ),
    # alps-lab/adv2, rev1/mask_v2/attack_mask_multistep_benign.py: margin of 10, 4 + 4 of MASK's steps, refreshed every
    # 50. There the two losses take turns, with a line search that keeps the margin. Here they are one loss, whose first
    #     term is 0 while the margin is kept; the weights and the step are metfa's. If 10 cannot be reached, the first
    #     term never becomes 0, and it alone moves the image: take a smaller `margin`.
    "adv2-mask": AttackSettings(
        n_first_steps=400,
        n_steps=1000,
        step="sign",
        step_size=1 / 255,
        schedule="linear",
        prediction_loss="margin",
        margin=10.0,
        map_weight=100.0,
        epsilon=0.031,
        softening=None,
        unrolled=(4, 4),
        refresh_every=50,
        check_every=50,
    ),
}


def settings_of(settings: Any, overrides: dict[str, Any]) -> AttackSettings:
    """Settings, given by the name of a preset or as they are, with single ones replaced."""
    if isinstance(settings, str):
        if settings not in PRESETS:
            raise ValueError(
                f"`settings` must be {', '.join(map(repr, PRESETS))}, or an AttackSettings, got {settings!r}"
                f"{did_you_mean(settings, PRESETS)}"
            )
        settings = PRESETS[settings]
    if not isinstance(settings, AttackSettings):
        raise TypeError(
            f"`settings` must be the name of a preset or an AttackSettings, got {type(settings).__name__}: {settings!r}"
        )
    known = [field.name for field in fields(AttackSettings)]
    for name in overrides:
        if name not in known:
            raise TypeError(f"an attack has no setting {name!r}{did_you_mean(name, known)}; it has {', '.join(known)}")
    return replace(settings, **overrides)
