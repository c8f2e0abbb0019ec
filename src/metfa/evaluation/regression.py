"""`Regression`: explanations are recorded once, and later checked against those of the present model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metfa._base.progress import progress_bar
from metfa._base.provenance import versions
from metfa._base.validation import as_path, check_number, one_of, positive_int
from metfa.by_name.noises import noise_of
from metfa.by_name.regions import KINDS, NamedRegions, region_named
from metfa.evaluation.inputs import ImageFiles, Texts
from metfa.evaluation.record import Record
from metfa.evaluation.study import NamedMethod
from metfa.results.changed_inputs import changes_in
from metfa.results.changes import Changes
from metfa.results.corrections import BOTH, check_correction
from metfa.results.differences import difference_of
from metfa.results.equivalence import check_enough
from metfa.results.regions import Regions
from metfa.results.sample import AttributionSample
from metfa.results.scaled import SCALES
from metfa.results.terms import Terms
from metfa.sampling.explain import explain
from metfa.sampling.rows import Rows
from metfa.sampling.run import Run
from metfa.sampling.streams import MOST_ENTROPY, SCHEME
from metfa.text.words import words_of

__all__ = ["Recorded", "Regression"]


class Recorded(NamedTuple):
    """A finished record: its folder, how large it is, and whether it was finished before."""

    folder: Path
    n_bytes: int
    was_finished: bool


@dataclass(frozen=True, kw_only=True)
class Regression:
    """Description of a check: has the explanation of a model changed on these inputs?

    `metfa.evaluation.read_regression` reads it from a file.

    Parameters
    ----------
    model : str
        Name of the model, as on the command line.
    data : ImageFiles or Texts
        The inputs.
    method : NamedMethod
        The explainer, by name.
    noise : str
        The noise, by name.
    n_samples, seed : int
        The paper's N, and the seed of the noise.
    regions : str
        Regions of pictures, by name; "none" asks about single pixels. Texts are asked about word by word.
    scale : {"raw", "mean", "share", "rank"}
        How maps are scaled before they are subtracted, see `AttributionSample.scaled`.
    delta, alpha, correction
        As for `AttributionSample.changed`, over all inputs and regions together.
    batch_size, device
        As in `metfa.Study`; they do not change what is asked.
    """

    model: str
    data: ImageFiles | Texts
    method: NamedMethod
    noise: str
    n_samples: int = 50
    seed: int = 0
    regions: str = "superpixels:50"
    scale: str = "raw"
    delta: float = 0.0
    alpha: float = 0.05
    correction: str | None = None
    batch_size: int = 10
    device: str = "cpu"
    terms: Terms = field(init=False)

    def __post_init__(self) -> None:
        for name in ("n_samples", "batch_size"):
            positive_int(getattr(self, name), name)
        positive_int(self.seed, "seed", 0, MOST_ENTROPY)
        noise_of(self.noise, self.method.of)
        self._named_regions()
        one_of(self.scale, "scale", ("raw", *SCALES))
        check_number(self.delta, "delta")
        correction = check_correction("holm" if self.correction is None else self.correction)
        object.__setattr__(self, "terms", Terms(0.0, self.alpha, correction, families=BOTH))
        if isinstance(self.data, Texts):
            object.__setattr__(self, "regions", "none")

    @property
    def asked(self) -> dict[str, Any]:
        """What the record and the check must have in common."""
        return {
            "method": self.method.method,
            "settings": {key: repr(value) for key, value in sorted(self.method.settings.items())},
            "noise": self.noise,
            "n_samples": self.n_samples,
            "seed": self.seed,
            "regions": self.regions,
            "scale": self.scale,
            "streams": SCHEME,
            "inputs": {
                name: [self.data.digest(index), self.data.targets[index]] for index, name in enumerate(self.data.names)
            },
        }

    def record(self, out: str | Path, model: Any = None, *, progress: bool = False) -> Recorded:
        """Explain all inputs, and keep the samples in the folder `out`; an interrupted record resumes.

        Of pictures only the scores of the regions are kept, if `scale` is "raw"; else whole maps.

        Parameters
        ----------
        out : path
            The folder: new, or with a record of the same description.
        model : str or LoadedModel or callable, optional
            Another model than the description names.
        progress : bool
            Show a bar.

        Raises
        ------
        FileExistsError
            If the folder holds anything else; the message names what differs.
        TooFewSamplesError
            If nothing could be found with so few samples.
        """
        record = Record(as_path(out, "out"), self.asked)
        finished = record.check_free(_name_of(self.model, model))
        if not finished:
            loaded = self._loaded(model)
            self._check_enough(loaded)
            record.begin({
                "model": _name_of(self.model, model), "weights": getattr(loaded, "weights", None),
                "delta": float(self.delta), "alpha": self.alpha, "correction": self.terms.correction,
                "versions": versions(),
            })  # fmt: skip
            with self._bar(progress) as bar:
                for index, store in enumerate(record.places):  # of finished ones it is checked that the model is theirs
                    self._explained(loaded, index, run=Run(store=store))
                    bar.update(1)
        return Recorded(record.folder, record.size, finished)

    def check(self, against: str | Path, model: Any = None, *, progress: bool = False) -> Changes:
        """Explain the same noisy copies with the present model, and compare with a record.

        The class that the recorded model predicted is explained in both. The record is only read.

        Parameters
        ----------
        against : path
            Folder of `record`.
        model : str or LoadedModel or callable, optional
            Another model than the description names.
        progress : bool
            Show a bar.

        Returns
        -------
        Changes
            True if anything is shown to have changed by more than `delta`.

        Raises
        ------
        ValueError
            If the record is unfinished, damaged, or of another method, noise, seed, number of samples, regions, scale
            or inputs; if the present model sees other pixels. The message names what differs.
        TooFewSamplesError
            If nothing could be found with so few samples.
        """
        kept, recorded = Record(as_path(against, "against"), self.asked).read()
        check_enough(self.n_samples, self.terms, self._family(recorded))
        loaded = self._loaded(model)
        found = {}
        with self._bar(progress) as bar:
            for index, (name, before) in enumerate(recorded):
                after = self._explained(loaded, index, before, run=Run())
                named = f"text {name}" if isinstance(self.data, Texts) else name
                found[named] = self._difference(index, before, after, loaded)
                bar.update(1)
        changes = changes_in(found, self.delta, alpha=self.alpha, correction=self.terms.correction or "none")
        made = {name: kept[name] for name in ("model", "weights", "delta")}
        now = {"model": _name_of(self.model, model), "weights": getattr(loaded, "weights", None), "delta": self.delta}
        return replace(changes, before={**changes.before, **made}, after={**changes.after, **now})

    def _bar(self, shown: Any) -> Any:
        return progress_bar(len(self.data), 0, shown=shown, unit="input", doing="explaining", extra="image")

    def _family(self, recorded: list[tuple[str, AttributionSample]]) -> int:
        """Number of differences in all inputs together."""
        found = 0
        for _, sample in recorded:
            regions = None if self.scale == "raw" else self._regions_of(sample.inputs[0])
            found += sample.n_features if regions is None else len(regions)
        return found

    def _check_enough(self, loaded: Any) -> None:
        """Raise if nothing could be found with so few samples, before the model is asked."""
        if isinstance(self.data, Texts):
            family = sum(len(words_of(text)) for text in self.data.texts)
        else:
            pixels = self._input(loaded, 0)[0]
            of_one = self._regions_of(pixels)
            family = len(self.data) * (pixels.shape[-1] * pixels.shape[-2] if of_one is None else len(of_one))
        check_enough(self.n_samples, self.terms, family)

    def _loaded(self, model: Any) -> Any:
        from metfa import models, text  # which need torch

        if not isinstance(self.data, Texts):
            _check_device(self.device)
        model = self.model if model is None else model
        if not isinstance(model, str):
            return model
        return text.load_model(model) if self.method.of == "text" else models.load(model)

    def _input(self, loaded: Any, index: int) -> Any:
        array = self.data.load(index, getattr(loaded, "preprocess", None))
        return [array] if isinstance(self.data, Texts) else array[None].to(self.device)

    def _named_regions(self) -> NamedRegions | None:
        return region_named(self.regions, "regions", (*KINDS["image"], "none"), least=1, against=None)

    def _regions_of(self, pixels: Any) -> Regions | None:
        named = self._named_regions()
        return None if named is None else named(np.asarray(getattr(pixels, "cpu", lambda: pixels)()))

    def _explained(
        self, loaded: Any, index: int, before: AttributionSample | None = None, *, run: Run
    ) -> AttributionSample:
        inputs, target = self._input(loaded, index), self.data.targets[index]
        if before is not None:
            target = before.target[0]
            self._check_same(inputs, before, index)
        common = {
            "noise": noise_of(self.noise, self.method.of), "n_samples": self.n_samples,
            "batch_size": self.batch_size, "rng": self.seed, "run": run,
        }  # fmt: skip
        if isinstance(self.data, Texts):
            from metfa.text.explain import explain_text

            return explain_text(loaded, inputs[0], target, method=self.method, **common)
        module = getattr(loaded, "module", loaded)
        module = module.to(self.device) if hasattr(module, "to") else module
        over = None
        if self.scale == "raw":  # others scale whole maps before they are pooled
            over = self._regions_of(inputs[0]) if before is None else before.regions
        return explain(self.method(module), inputs, target, over=over, predict=module, **common)

    def _check_same(self, inputs: Any, before: AttributionSample, index: int) -> None:
        """Raise unless the present model sees what the recorded one saw."""
        if Rows(inputs).ids() == before.input_names:
            return
        now, then = inputs[0], before.inputs[0]
        how = f"{tuple(then.shape)} pixels then, {tuple(now.shape)} now"
        if tuple(now.shape) == tuple(then.shape):
            how = f"up to {np.abs(np.asarray(now.cpu()) - then).max():.2g} apart"
        raise ValueError(
            f"`against`: the model sees other pixels of {self.data.names[index]!r} than those that were recorded "
            f"({how}): its preprocessing, or Pillow, is another one, so that nothing pairs the noise; make a new record"
        )

    def _difference(
        self, index: int, before: AttributionSample, after: AttributionSample, loaded: Any
    ) -> AttributionSample:
        try:
            found = difference_of(before, after, scale=self.scale)
        except ValueError as error:
            raise ValueError(f"{self.data.names[index]}: {error}") from error
        regions = None if self.scale == "raw" else self._regions_of(self._input(loaded, index)[0])
        return found if regions is None else found.over(regions)


def _name_of(named: str, model: Any) -> str:
    return named if model is None else model if isinstance(model, str) else type(model).__name__


def _check_device(name: str) -> None:
    import torch

    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"`device` {name!r} is not available: {str(error).splitlines()[0]}") from error
