"""`manipulate` and `targeted`: images that look nearly the same, with a map that somebody drew."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

from metfa._arrays import to_host
from metfa._base.progress import progress_bar
from metfa._base.provenance import describe, versions
from metfa._base.validation import positive_int
from metfa._base.warnings import WeakAttackWarning, warn
from metfa.attacks._asked import check_wanted, checked, classes_of, maps_to_draw, two_axes
from metfa.attacks._batch import Batch, Knows, Streams, Victim
from metfa.attacks._kept import Kept
from metfa.attacks._maps import needs_softening
from metfa.attacks.result import AttackResult, Measured
from metfa.attacks.settings import AttackSettings, settings_of
from metfa.calls.differentiation import weights_frozen
from metfa.calls.guard import left_as_found
from metfa.sampling.protocol import explained_model
from metfa.sampling.run import Run
from metfa.sampling.smoothed import SampledExplainer
from metfa.sampling.streams import SCHEME, root_entropy

__all__ = ["manipulate", "targeted"]


def manipulate(
    model: Any,
    explainer: Any,
    inputs: torch.Tensor,
    target: Any = None,
    *,
    target_map: Any,
    defence: SampledExplainer | None = None,
    knows: Knows | None = None,
    settings: str | AttackSettings = "strong",
    batch_size: int = 8,
    rng: Any = None,
    run: Run | None = None,
    **overrides: Any,
) -> AttackResult:
    r"""Change images a little, so that the prediction stays and the explanation becomes a given map.

    Dombrowski et al. 2019, "Explanations can be manipulated and geometry is to blame"; the loss and its units are in
    `AttackSettings`.

    Parameters
    ----------
    model : torch.nn.Module, callable or Called
        Images -> logits (batch, classes).
    explainer : callable
        Explainer whose maps are differentiable in the inputs.
    inputs : torch.Tensor, (batch, channels, height, width)
        Images, float32 or float64, pixels in [0, 1].
    target : int or sequence, optional
        Class whose map is drawn; None: the predicted class. The attack keeps the model's own prediction in any case.
    target_map : array, (batch, \*features) or \*features
        The map to draw, of the shape and in the units of the explainer's maps.
    defence : Smoothed, optional
        The defence that makes the maps people read. Its maps are measured in any case.
    knows : {"nothing", "defence", "seed"}, optional
        What the attacker knows about the defence. "nothing" is the paper's m3. "defence" (m4, the default if there is a
        defence): its explainer, noise, N and level, but the noise is fresh at each step. "seed": its exact noise too,
        if the defender puts the same noise on each version of an image. (The noise of `Smoothed` and `metfa.explain`
        depends on the image's content, so a changed image gets other noise: "seed" is a bound.)
    settings : str or AttackSettings
        "strong" (metfa's own, to see whether a map can be drawn at all), "dombrowski", "adv2-cam", "adv2-mask", or
        settings of your own.
    batch_size : int
        Images that are attacked together. The defence's own `batch_size` limits its rows in memory.
    rng : int, numpy.random.Generator or None
        Seed of restarts, of the attacker's noise and of the noise under which defences are measured.
    run : Run, optional
        Only `store` and `progress`, see `metfa.Run`. The store is a new folder for the result, see
        `metfa.attacks.load_attack`. An interrupted call keeps its state beside it and, if repeated, goes on from there;
        a finished one returns its result.
    **overrides
        Single settings that replace those of `settings`, such as ``n_steps=300``.

    Returns
    -------
    AttackResult
        If the prediction was lost, or the map came less than half of the way, `success` is False.

    Warns
    -----
    WeakAttackWarning
        If all steps together are shorter than the budget, or derivatives are 0: a failure then says nothing.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, before any step; for an explainer whose maps are not differentiable in the inputs.

    Examples
    --------
    >>> import torch
    >>> from metfa import attacks, explainers
    >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
    <torch...
    >>> model = torch.nn.Sequential(
    ...     torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
    ...     torch.nn.Linear(8, 2),
    ... ).eval()
    >>> target_map = torch.zeros(8, 8)
    >>> target_map[:4, :4] = 1
    >>> result = attacks.manipulate(
    ...     model, explainers.CAM(model), torch.rand(1, 1, 8, 8), target_map=target_map, epsilon=0.3, rng=0
    ... )
    >>> result.success
    array([ True])
    """
    return _attack(
        "manipulation", model, explainer, inputs, target_map, target, defence, knows, settings_of(settings, overrides),
        batch_size, rng, run,
    )  # fmt: skip


def targeted(
    model: Any,
    explainer: Any,
    inputs: torch.Tensor,
    target: Any,
    *,
    target_map: Any = None,
    defence: SampledExplainer | None = None,
    knows: Knows | None = None,
    settings: str | AttackSettings = "adv2-cam",
    batch_size: int = 8,
    rng: Any = None,
    run: Run | None = None,
    **overrides: Any,
) -> AttackResult:
    r"""Change images a little, so that another class is predicted and the explanation looks as before.

    ADV² (Zhang et al. 2020, "Interpretable deep learning under fire"): first the prediction is attacked, then the map,
    which is that of the class asked for.

    Parameters
    ----------
    model, explainer, inputs
        As for `manipulate`.
    target : int or sequence
        Class that the model should predict; not the one that it predicts now.
    target_map : array, optional
        The map to draw, as for `manipulate`. None: the benign one, that of the clean image for the class predicted.
    defence, knows, settings, batch_size, rng, run, **overrides
        As for `manipulate`; "adv2-cam" by default, and "adv2-mask" is for MASK.

    Returns
    -------
    AttackResult
        If the class asked for is not predicted, or the map came less than half of the way, `success` is False.
    """
    return _attack(
        "targeted", model, explainer, inputs, target_map, target, defence, knows, settings_of(settings, overrides),
        batch_size, rng, run,
    )  # fmt: skip


def _attack(
    kind: Literal["manipulation", "targeted"],
    model: Any,
    explainer: Any,
    inputs: Any,
    target_map: Any,
    target: Any,
    defence: Any,
    knows: Any,
    settings: AttackSettings,
    batch_size: int,
    rng: Any,
    run: Run | None,
) -> AttackResult:
    called, knows = checked(model, explainer, inputs, defence, knows)
    check_wanted(kind, target_map, target)
    positive_int(batch_size, "batch_size")
    if settings.softening == "if needed":
        settings = replace(settings, softening="softplus" if needs_softening(explainer) else None)
    if settings.epsilon is not None and settings.n_steps > 0 and settings.reach < settings.epsilon:
        warn(
            f"all steps together reach {settings.reach:.2g}, less than the budget `epsilon`={settings.epsilon:.2g}: "
            "take a larger `step_size` or more `n_steps`, or a failure says nothing",
            WeakAttackWarning,
        )
    started, clock = datetime.now(timezone.utc), time.perf_counter()
    run = Run.checked(run, ("store", "progress"))
    kept = None if run.store is None else Kept(run.store)
    begun = kept.root() if kept is not None and rng is None else None
    root, images = root_entropy(rng) if begun is None else begun, inputs.detach()
    about = {
        "explainer": describe(explainer),
        "defence": None if defence is None else describe(defence),
        "rng": hex(root),
        "batch_size": batch_size,
    }
    victim = Victim.of(called, explainer, defence)
    streams = Streams.of(images, root)
    models = [called.model, explained_model(explainer), None if defence is None else defence.model]
    n_steps = settings.n_restarts * (settings.n_first_steps + settings.n_steps)
    starts = range(0, len(images), batch_size)
    parts: list[tuple[Any, ...]] = []
    with kept or nullcontext(), ExitStack() as stack:
        stack.enter_context(left_as_found(*[found for found in models if found is not None]))
        for found in models:
            stack.enter_context(weights_frozen(found))
        images = images.clone()  # images made in inference mode cannot be in a graph
        scores = torch.cat([two_axes(victim.scores(images[start : start + batch_size])) for start in starts])
        predicted = scores.argmax(1).tolist()
        asked, explained = classes_of(kind, target, scores, predicted)
        drawn = maps_to_draw(target_map, victim, images, predicted, streams, batch_size)
        batches = [
            Batch(
                victim,
                settings,
                knows,
                images[part],
                scores[part],
                drawn[part],
                torch.tensor(asked[part], device=images.device),
                torch.tensor(explained[part], device=images.device),
                streams[part],
            )
            for part in (slice(start, start + batch_size) for start in starts)
        ]
        if not any(batch.any_map_moves() for batch in batches):  # before anything is written
            raise ValueError(
                f"the maps of {about['explainer']} do not move with the images: all derivatives are exactly 0, as in a "
                "network that is linear piece by piece; write `softening='softplus'` (it replaces ReLU, ReLU6, "
                "hardtanh and leaky ReLU where the model calls them as torch's modules or functions)"
            )
        arrays = {"inputs": images, "scores": scores, "target_map": drawn}  # other scores show another model
        call = {
            "kind": kind,
            "knows": knows,
            "settings": describe(settings),
            **about,
            **{name: describe(to_host(values)) for name, values in arrays.items()},
            "asked": asked,
            "explained": explained,
        }
        if kept is not None and (finished := kept.begin(call)) is not None:
            return finished
        with progress_bar(
            n_steps * len(starts), 0, shown=run.progress, unit="step", doing="attacking", extra="image"
        ) as bar:
            for start, batch in zip(starts, batches, strict=True):
                kept_so_far = (None, None) if kept is None else (kept.read(start), partial(kept.write, start))
                parts.append(batch.attacked(bar, *kept_so_far))
        measured = [_joined([part[index] for part in parts]) for index in range(3)]
        result = AttackResult(
            kind,
            knows,
            *measured,
            target_map=to_host(drawn),
            asked=tuple(asked),
            explained=tuple(explained),
            epsilon=settings.epsilon,
            curves={name: np.concatenate([part[3][name] for part in parts], axis=2) for name in parts[0][3]},
            provenance={
                "settings": asdict(settings),
                **about,
                "streams": SCHEME,
                "device": str(images.device),
                "started": started.isoformat(timespec="seconds"),
                "seconds": round(time.perf_counter() - clock, 3),
                "versions": versions(),
                "call": call,
            },
        )
        if kept is not None:
            kept.finish(result)
    n_there = int(result.there_already.sum())
    if n_there:
        warn(
            f"{n_there} of {len(result)} clean maps are the target map already, as where maps do not depend on the "
            "class: these attacks have no way to go, and that they do not succeed says nothing",
            WeakAttackWarning,
        )
    return result


def _joined(parts: Sequence[Measured]) -> Measured:
    inputs, scores, maps = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("inputs", "scores", "maps")
    )
    defended = [part.defended for part in parts if part.defended is not None]
    return Measured(inputs, scores, maps, np.concatenate(defended) if defended else None)
