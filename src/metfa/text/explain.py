"""`explain_text`: one text explained, word by word, under noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from metfa._base.other_words import our_words
from metfa._base.percents import counted
from metfa._base.validation import brief
from metfa._base.warnings import MetfaWarning, warn
from metfa.calls.guard import model_as_found, model_in_evaluation
from metfa.results.files import write_manifest
from metfa.results.sample import AttributionSample
from metfa.results.until import Until
from metfa.sampling.explain import explain
from metfa.sampling.protocol import explained_model
from metfa.sampling.randomised import randomised, seeded
from metfa.sampling.run import Run
from metfa.sampling.smoothed import SampledExplainer
from metfa.text._facts import facts_of
from metfa.text._text_model import TextModel
from metfa.text.lemna import LEMNA
from metfa.text.sense_synonyms import SenseSynonyms
from metfa.text.word_for_word import WordForWord
from metfa.text.words import Words, words_of

__all__ = ["explain_text"]


@our_words
def explain_text(
    model: Callable[[list[Any]], Any],
    text: Any,
    target: Any = None,
    *,
    method: Callable[[Any], Any] = LEMNA,
    noise: Any = SenseSynonyms(0.5),  # noqa: B008 - holds only settings; the table is read when a word is replaced
    n_samples: int | Until = 10,
    batch_size: int | None = None,
    rng: Any = None,
    run: Run | None = None,
) -> AttributionSample:
    """Explain N copies of a text in which words are replaced by synonyms.

    Parameters
    ----------
    model : callable
        A list of texts -> class probabilities (batch, classes). If `text` is a list of tokens, it takes a list of
        lists of tokens.
    text : str or list of str
        One text, which `metfa.text` cuts into words, or its tokens: each token is then a word. Several texts take a
        call each; where half of the tokens or more hold white space, so that they look like texts, a warning says so.
    target : int, optional
        Class to explain. None: the class predicted for the text, fixed for all copies.
    method : callable
        Model -> explainer of texts: `metfa.text.LEMNA` (the paper's, the default), `metfa.text.LIME`,
        `metfa.text.Occlusion`, `metfa.text.GradientXInput`, `metfa.text.LRP`, or one of them with settings by
        `functools.partial`. It can also be your own function that returns ``explainer(texts, target=target)`` ->
        attributions (batch, words).
        If that explainer has randomness of its own, wrap it: ``lambda model: metfa.seeded(mine(model))``.
    noise : callable or None
        ``f(text, rng) -> text`` with as many words. The default replaces words by synonyms in their most frequent
        sense (`SenseSynonyms`). The paper's is ``metfa.text.Synonyms(0.3)``, which takes any sense: more words change,
        and what the text says changes too. None samples only the explainer's own randomness.
    n_samples, batch_size, rng, run
        As in `metfa.explain`. The features have the names of the words, and the classes those of the model's
        ``class_names``, if it has them and `run` gives none.

    Returns
    -------
    AttributionSample
        A batch of one. Its features are the words, ``sample.words``. ``sample.provenance["text"]`` holds facts about
        the text itself, where model and explainer provide them: ``unscaled``, the smallest and largest score
        before they were scaled to [0, 1]; ``r2``, how well the linear model of LEMNA or LIME fits; ``unread``, how many
        words the model does not read. They cost one more explanation of the text.

    Raises
    ------
    TypeError, ValueError
        For bad arguments, a text without words, a model that does not return one row of probabilities a text, or a
        noise that changes the number of words.

    Warns
    -----
    MetfaWarning
        If the tokens look like texts.

    Examples
    --------
    >>> from metfa import text
    >>> model = text.load_model("sentiment")
    >>> sample = text.explain_text(model, "a dull, lifeless film with one good joke", method=text.Occlusion, rng=0)
    >>> sample.words[1], sample.vanilla.shape, sample.summary()[0].explained
    ('dull', (1, 8), 'class 0 (negative), as predicted')
    """
    run = Run.checked(run, ("store", "progress", "input_names", "class_names", "first_sample"))
    asked, words = TextModel.of(model), words_of(text)
    _warn_of_texts(words)
    if isinstance(method, randomised | seeded | SampledExplainer):
        raise TypeError(
            f"`method` must be a function of the model, got a {type(method).__name__}: wrap the explainer that "
            "the function returns, as in `lambda model: metfa.seeded(metfa.text.Occlusion(model))`"
        )
    if not callable(method) or explained_model(method) is not None:
        raise TypeError(
            f"`method` must be a function of the model, such as metfa.text.LEMNA, got {type(method).__name__}: "
            "if you have an explainer already, write `lambda model: explainer`"
        )
    made, model = method(model), asked.called.model
    with model_as_found(model), model_in_evaluation(model):  # metfa cannot see the model inside the function below
        word_for_word = None if noise is None else WordForWord(noise)
        sample = explain(
            made,
            [text],
            target,
            noise=word_for_word,
            n_samples=n_samples,
            predict=asked.scores,
            batch_size=batch_size,
            rng=rng,
            run=replace(run, feature_names=words.words, class_names=_class_names(model, run)),
        )
        changes = [] if word_for_word is None else word_for_word.changes_in(text)
        kept = sample.provenance.get("notes", [])  # of a finished result with this note too
        notes = [*kept, *(note for note in changes if note not in kept)]
        facts = {"text": facts_of(made, model, sample), **({"notes": notes} if notes else {})}
        sample = replace(sample, provenance={**sample.provenance, **facts})
    if run.store is not None:
        write_manifest(Path(run.store).expanduser(), sample)
    return sample


def _warn_of_texts(words: Words) -> None:
    """Warn of tokens that look like texts; a few may hold blanks, as "motion picture" does."""
    texts = [token for token in words.words if len(token.split()) > 1] if words.gaps is None else []
    if 2 * len(texts) >= len(words) and texts:
        warn(
            f"`text` is a list of {counted(len(words), 'token')}, of which {len(texts):,} hold white space, such as "
            f"{brief(texts[0])}: each token is read as one word of one text; for several texts make one call each, as "
            "in `[explain_text(model, text) for text in texts]`, and give a text as a string",
            MetfaWarning,
        )


def _class_names(model: Any, run: Run) -> Any:
    """Names of the classes, as given or as the model has them; None if nobody knows."""
    names = getattr(model, "class_names", None)
    return tuple(map(str, names)) if run.class_names is None and names is not None else run.class_names
