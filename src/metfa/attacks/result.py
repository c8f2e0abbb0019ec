"""The result of an attack: images, predictions and maps before and after it, and the size of the change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from metfa._base.validation import check_flag

if TYPE_CHECKING:
    from metfa.plot.settings import InFigure

__all__ = ["AttackResult", "Measured", "distance"]

ALREADY = "the clean map is the target map already, which no attack comes nearer to"
ENOUGH = 0.5  # of the way to the target map; from here on an attack has succeeded
ROUNDING = 1e-6  # of pixel values; float32 may miss a level of 8 bits by this much


def distance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    r"""d(m, n), the mean absolute difference of maps (batch, \*features) over their features (paper, attacks)."""
    difference = np.abs(np.asarray(first, np.float64) - second)
    return difference.reshape(len(difference), -1).mean(axis=1)


@dataclass(frozen=True, repr=False, eq=False)
class Measured:
    r"""Images, and the model's scores, the explainer's maps and the defence's maps of them.

    Attributes
    ----------
    inputs : ndarray, (batch, channels, height, width)
        The images.
    scores : ndarray, (batch, classes)
        The model's scores.
    maps : ndarray, (batch, \*features)
        Maps of the explainer.
    defended : ndarray, (batch, \*features), or None
        Maps of the defence; None without one.
    """

    inputs: np.ndarray
    scores: np.ndarray
    maps: np.ndarray
    defended: np.ndarray | None = None

    @property
    def predictions(self) -> np.ndarray:
        """Class of the highest score, (batch,)."""
        return self.scores.argmax(axis=1)


@dataclass(frozen=True, repr=False, eq=False)
class AttackResult:
    r"""The images that an attack found, and the clean ones; everything is measured with the unsoftened model.

    In the paper's terms, m1 is `target_map`, and m2 is ``adversarial.maps`` of an attack on the explainer alone. m3 is
    ``adversarial.defended`` of that attack (``knows="nothing"``); m4 is ``adversarial.defended`` of an attack on the
    defence too (``knows="defence"``), see `knows`. A pair of results makes the paper's table.

    Attributes
    ----------
    kind : {"manipulation", "targeted"}
        Whether the attack was to keep the prediction, or to change it.
    knows : {"nothing", "defence", "seed"}
        What the attacker knew about the defence.
    clean, adversarial, rounded : Measured
        The images at the start, the attack's images, and these in 8 bits, as in a file. The 8-bit images keep to the
        same budget if it contains any level of 8 bits (otherwise `rounded_success` is False).
    target_map : ndarray, (batch, \*features)
        The map to draw, m1.
    asked, explained : tuple of int
        For each image, the class that the model should predict, and the class that maps explain.
    epsilon : float or None
        Largest change of a pixel that was allowed.
    curves : dict of ndarray, (restarts, steps, batch)
        Terms of the loss at each step (unweighted), "loss", their weighted sum, and "distance", that of the single map
        from the target map. If the attacker knows the defence, also "distance defended", under the attacker's own
        noise. Distances are NaN at steps without a look at the maps.
    provenance : dict
        Settings, explainer, defence, seed, versions, time.
    """

    kind: Literal["manipulation", "targeted"]
    knows: Literal["nothing", "defence", "seed"]
    clean: Measured
    adversarial: Measured
    rounded: Measured
    target_map: np.ndarray
    asked: tuple[int, ...]
    explained: tuple[int, ...]
    epsilon: float | None
    curves: dict[str, np.ndarray]
    provenance: dict[str, Any]

    def __len__(self) -> int:
        return len(self.asked)

    @cached_property
    def predicted(self) -> np.ndarray:
        """Whether the class asked for is predicted, (batch,) bool."""
        return self.adversarial.predictions == np.array(self.asked)

    @cached_property
    def nearer(self) -> np.ndarray:
        """How much of the way to the target map the attacked map came, (batch,).

        1: it equals the target map. 0: it is as far away as the clean image's map (for the class whose map is drawn).
        Below 0: it is further away. NaN: the clean image's map is the target map already, so there is no way to go. The
        attacked map is the defended one if the attacker knows the defence, else the single one.
        """
        return self._nearer("adversarial")

    @cached_property
    def success(self) -> np.ndarray:
        """Whether each attack reached its goal, (batch,) bool: `predicted`, and `nearer` at least a half."""
        return ~np.any(list(self.missed().values()), axis=0)

    @cached_property
    def rounded_success(self) -> np.ndarray:
        """The same for the images in 8 bits, if these keep to the budget too."""
        return ~np.any(list(self.missed(rounded=True).values()), axis=0)

    def missed(self, *, rounded: bool = False) -> dict[str, np.ndarray]:
        """What an attack did not reach, in words, and for which images that is so, (batch,) bool each.

        Parameters
        ----------
        rounded : bool, default: False
            Of the images in 8 bits.
        """
        part = "rounded" if check_flag(rounded, "rounded") else "adversarial"
        measured: Measured = getattr(self, part)
        found = {
            "another prediction than asked": measured.predictions != np.array(self.asked),
            "less than half of the way": ~(self._nearer(part) >= ENOUGH) & ~self.there_already,
            ALREADY: self.there_already,
        }
        if rounded and self.epsilon is not None:
            found["change over the limit"] = ~(self.budget(rounded=True)["linf"] <= self.epsilon + ROUNDING)
        return found

    @cached_property
    def distances(self) -> dict[str, np.ndarray]:
        """Mean absolute difference of maps from the target map, (batch,) each.

        "clean", "adversarial" and "rounded" are for the explainer's maps; "clean defended" and so on for the defence's.
        """
        found = {}
        for name in ("clean", "adversarial", "rounded"):
            measured: Measured = getattr(self, name)
            found[name] = distance(measured.maps, self.target_map)
            if measured.defended is not None:
                found[f"{name} defended"] = distance(measured.defended, self.target_map)
        return found

    def budget(self, *, rounded: bool = False) -> dict[str, np.ndarray]:
        """Size of the change, (batch,) each: "linf", "l2" and "mean" (the mean absolute change of a pixel value)."""
        measured = self.rounded if check_flag(rounded, "rounded") else self.adversarial
        change = np.abs(measured.inputs.astype(np.float64) - self.clean.inputs).reshape(len(self), -1)
        return {"linf": change.max(axis=1), "l2": np.sqrt((change**2).sum(axis=1)), "mean": change.mean(axis=1)}

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a new folder `path` (arrays as .npy, a manifest last), all or nothing; see `metfa.attacks.load_attack`.

        Raises
        ------
        FileExistsError
            If `path` exists, and is no saved attack or `overwrite` is not given.
        """
        from metfa.attacks.saving import save_attack

        return save_attack(self, path, overwrite=overwrite)

    def plot(self, *, index: int = 0, title: str | None = None, fig: InFigure | None = None) -> InFigure:
        """Draw one image before and after, its maps and the curves of the attack; see `metfa.plot.attack`."""
        from metfa.plot import attack

        return attack(self, index=index, title=title, fig=fig)

    @property
    def there_already(self) -> np.ndarray:
        """Whether the clean image's map is the target map, to rounding: there is no way to go, (batch,) bool."""
        wanted = np.abs(self.target_map).reshape(len(self), -1).max(axis=1)
        return self.distances[f"clean{self._shown}"] <= ROUNDING * wanted

    @property
    def _shown(self) -> str:
        """Which maps the attacker draws on, in names of `distances`."""
        return "" if self.knows == "nothing" or self.clean.defended is None else " defended"

    def _nearer(self, part: str) -> np.ndarray:
        before, after = (self.distances[f"{name}{self._shown}"] for name in ("clean", part))
        return np.where(self.there_already, np.nan, 1 - after / np.where(self.there_already, 1, before))

    def __repr__(self) -> str:
        before, after = self.distances["clean"].mean(), self.distances["adversarial"].mean()
        return (
            f"AttackResult({self.kind} of {len(self)} images, {int(self.success.sum())} succeeded, mean distance to "
            f"the target map {before:.4f} -> {after:.4f}, largest change {self.budget()['linf'].max():.4f})"
        )
