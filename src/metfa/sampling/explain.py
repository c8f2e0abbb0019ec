"""Sample an explainer under noise: a request, rounds of samples, a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, overload

from metfa._base.other_words import our_words
from metfa._base.progress import watched_by
from metfa._base.warnings import each_once
from metfa.calls.guard import left_as_found
from metfa.calls.layouts import layout_kept
from metfa.results.attribution_parts import AttributionParts, in_parts
from metfa.results.sample import AttributionSample
from metfa.results.until import Until
from metfa.sampling.explainer_attributes import known_inputs_within, known_signed, with_own_threshold
from metfa.sampling.progress import Progress
from metfa.sampling.request import Request
from metfa.sampling.rounds import rounds_of
from metfa.sampling.rounds_of_parts import RoundsOfParts
from metfa.sampling.run import Run
from metfa.sampling.sampler import Sampler
from metfa.sampling.store import sink_of

__all__ = ["explain"]


@overload
def explain(  # pyright: ignore[reportOverlappingOverload] - a tuple is Any, too
    explainer: Callable[..., Any],
    inputs: tuple[Any, ...] | Mapping[Any, Any],
    target: Any = None,
    *,
    noise: Any,
    n_samples: int | Until = 10,
    over: None = None,
    predict: Callable[..., Any] | None = None,
    row_args: dict[str, Any] | None = None,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> AttributionParts | Any: ...  # an explainer may return one map of several inputs
@overload
def explain(
    explainer: Callable[..., Any],
    inputs: Any,
    target: Any = None,
    *,
    noise: Any,
    n_samples: int | Until = 10,
    over: Any = None,
    predict: Callable[..., Any] | None = None,
    row_args: dict[str, Any] | None = None,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> AttributionSample: ...
@our_words
@each_once()
def explain(
    explainer: Callable[..., Any],
    inputs: Any,
    target: Any = None,
    *,
    noise: Any,
    n_samples: int | Until = 10,
    over: Any = None,
    predict: Callable[..., Any] | None = None,
    row_args: dict[str, Any] | None = None,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> AttributionSample | AttributionParts:
    r"""Explain N noisy copies of each input.

    The samples :math:`e_i = E(x \oplus n_i)`, i = 1..N, are independent draws from the law of the explanation under
    the noise (paper, section on the sampling of explanations). The result answers questions about each feature's
    median: which are significant, how uncertain, what the stable map is.

    Parameters
    ----------
    explainer : callable
        It is called as ``explainer(inputs, target=target)`` and returns attributions (batch, \*features), or a pair of
        them and the model's scores (batch, classes). A bound Captum method such as ``Saliency(model).attribute`` works
        as it is. For several inputs it may return attributions of each: a tuple with one array for each of a tuple of
        inputs, as Captum does, or a dict of arrays with names of the inputs (or a pair of these and the scores). A pair
        of arrays for two inputs counts as attributions only if both have the inputs' shapes. An explainer with
        randomness of its own takes ``rngs=`` too (`metfa.randomised`) or is wrapped by `metfa.seeded`.
    inputs : array, data frame, tuple or dict of arrays, or list of objects
        One batch, first axis the batch: NumPy, torch, JAX or CuPy arrays; a list for texts. A data frame of pandas or
        polars stays one: explainer and `predict` get frames with the same names and types. The index of pandas names
        the rows, if it has a name or holds other things than integers.
    target : int or sequence, optional
        What is explained: one class index for all, or one entry for each row. None: the class predicted on the clean
        input, the same for all samples.
    noise : callable or None
        ``f(x, rng) -> x`` for one input (NumPy on the host, no batch axis), from `metfa.noise` or your own; it runs in
        worker threads. For tuple or dict inputs also a tuple or dict of noises, with None for parts that stay as they
        are. For data frames `metfa.noise.per_column` and `metfa.noise.from_table` know the columns. None samples only
        the explainer's own randomness.
    n_samples : int or Until
        The paper's N: samples of each input. `metfa.stats.min_samples` gives the smallest N for a level. Or a rule that
        says when to stop, such as ``metfa.Until(undecided=0.05)``.
    over : Regions or array, optional
        Regions that each map is pooled over as soon as it is made, so that only the regions' scores are kept; see
        `AttributionSample.over`, which gives the same from maps that were kept.
    predict : callable, optional
        Inputs -> scores (batch, classes). For metfa's explainers and bound Captum methods it is found without help.
    row_args : dict of arrays, optional
        Further keyword arguments of the explainer with one entry for each row (baselines, masks), batched like the
        inputs.
    batch_size : int, optional
        Rows in one call of the explainer, inputs and samples mixed. None: 10 on a CPU and 32 on a GPU, fewer of images
        that would not fit into memory with their gradients (4 kB a pixel; 4 GiB on a CPU, a quarter of a GPU's), 200 of
        a table (a data frame, or an array of floats with at most 1,000 columns). It changes speed and memory, not
        results, which record it.
    rng : int, numpy.random.Generator or None
        Seed. The same seed gives the same samples (to the rounding of the model's kernels) for every batch size,
        order of the inputs and split over several calls. If an input is there twice in one call, its copies get
        samples of their own, by their order; name them by ``metfa.Run(input_names=...)`` to get the same samples in
        calls of their own. None: fresh, recorded in the result.
    run : Run, optional
        Where samples are kept, whether a bar is shown, the names of inputs and features, the first sample; see
        `metfa.Run`.

    Returns
    -------
    AttributionSample or AttributionParts
        Samples (n, batch, \*features), the vanilla map, target, clean scores, share of flips, and provenance; of each
        part by its name, where the explainer returns attributions of several inputs. `Until` then asks every part, each
        with a threshold of its own, and ends when each is content.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, before the model is touched; for attributions of a wrong shape or that are not finite,
        naming input and sample.

    Warns
    -----
    DegenerateAttributionsWarning
        If maps are constant, if the noise changes nothing of an input, or if without noise the explainer draws
        nothing. Samples that are then all the same are one explanation N times: its features stay undecided.
    RowDependenceWarning
        If the explainer, or the model, mixes the rows of a batch, or if the explainer draws random numbers that rows
        may share; it then gets one row a call. The samples are those of rows alone.
    ReproducibilityWarning
        If the explainer draws from global generators, or was found to have a generator of its own.

    Notes
    -----
    The model's mode, gradients and hooks and the global random generators are as before, also after an exception.
    The model is in evaluation mode meanwhile, other threads that explain it wait, and ``torch.autocast`` around the
    call is switched off. All torch modules that explainer and `predict` hold or name are found: attributes, variables
    around a function and globals in its code. One that a function loads by itself is not.

    The first batch is explained, and then one row of it alone (two rows, where the explainer does not promise that
    they are independent). If the maps differ by more than rounding, rows go one a call.

    Examples
    --------
    >>> import numpy as np, metfa
    >>> weights = np.array([3.0, 0.0, -2.0])
    >>> explainer = lambda inputs, target: np.abs(inputs * weights)
    >>> sample = metfa.explain(explainer, np.ones((1, 3)), 0, noise=metfa.noise.Uniform(0.1), n_samples=20, rng=0)
    >>> sample.significance_map(threshold=1.0)
    array([[ 1, -1,  1]], dtype=int8)
    """
    request = Request(
        explainer=explainer, inputs=inputs, target=target, noise=noise, n_samples=n_samples, over=over,
        predict=predict, row_args=row_args, batch_size=batch_size, rng=rng, run=Run.checked(run),
    )  # fmt: skip
    n_rows, rule = len(request.rows), request.n_samples
    aimed = rule if request.over is not None else with_own_threshold(rule, explainer)
    n_inputs = known_inputs_within(explainer) or n_rows
    rounds = rounds_of(aimed, n_inputs, signed=known_signed(explainer), over=request.over)
    with sink_of(request) as sink:  # to its end: until then the store is this call's alone
        total, shown = rounds.most * n_rows, request.run.progress
        with (
            left_as_found(explainer, request.predict),
            layout_kept(sink.laid_out),
            Progress(total, sink.n_done, shown=shown, doing="explaining", explainers=(explainer,)) as progress,
            watched_by(progress),
        ):
            sampler = Sampler(request, sink)
            seen = sampler.seen(rule.over if isinstance(rule, Until) else None)
            if sampler.layout is not None and isinstance(aimed, Until):
                rounds = RoundsOfParts(aimed, n_rows, sampler.layout, signed=known_signed(explainer))
            rounds.check(seen, sink.usual)
            if (finished := sampler.open()) is not None:
                progress.update(total - sink.n_done)
                return in_parts(finished)
            while (upto := rounds.next(sampler.taken, sampler.made / n_rows)) is not None:
                with sampler.advancing(upto) as chunks:
                    for n_maps in chunks:
                        progress.update(n_maps)
                progress.set_postfix_str(rounds.look(seen, upto, sampler.unmoved))
        sampler.warn()
        of_parts = rounds.of_parts() if isinstance(rounds, RoundsOfParts) else ()
        return in_parts(sampler.sample(rounds.stopping(), of_parts))
