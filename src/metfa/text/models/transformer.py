"""A Hugging Face network as a text model: words in, probabilities out, and its word vectors between them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from metfa._base.validation import positive_int
from metfa.calls.guard import model_in_evaluation
from metfa.text.models._heads import in_torch
from metfa.text.models._probe import HowAsked, probed
from metfa.text.models._subword_rows import ShortRow, end_token_expected, short_row, subwords_of
from metfa.text.models.embedded import TokenBatch, checked_logits, probabilities, row_by_row

__all__ = ["Transformer", "from_transformers"]

UNLIMITED = 10**6  # tokenisers without a limit of their own report 1e30


@dataclass(frozen=True)
class Transformer:
    """What :func:`from_transformers` returns: a list of rows -> probabilities (batch, classes), a NumPy array.

    Attributes
    ----------
    encoder : torch.nn.Module
    head : callable or None
    max_length : int
    class_names : tuple of str or None
    truncate, multi_label : bool
    """

    tokenizer: Any = field(repr=False)
    encoder: torch.nn.Module = field(repr=False)
    head: Callable[[torch.Tensor], torch.Tensor] | None = field(repr=False)
    max_length: int
    class_names: tuple[str, ...] | None
    truncate: bool = False
    multi_label: bool = False

    @property
    def module(self) -> torch.nn.Module:
        """Encoder and head together; both are in evaluation mode while the model is asked."""
        parts = [part for part in (self.encoder, self.head) if isinstance(part, torch.nn.Module)]
        together = torch.nn.ModuleList(parts)
        together.training = any(part.training for part in parts)
        return together

    @cached_property
    def _how_asked(self) -> HowAsked:
        def answer(**rows: torch.Tensor) -> torch.Tensor:
            """Logits, or the pooled vectors of a network without logits."""
            mask = torch.ones(next(iter(rows.values())).shape[:2], dtype=torch.bool, device=self._device)
            if self.head is not None:
                return self._logits(mask, **rows)
            output = self._called(mask, **rows)
            return output.logits if getattr(output, "logits", None) is not None else _mean_of(output)

        with torch.no_grad(), model_in_evaluation(self.module):
            return probed(self.encoder, self._short.two_rows(self.tokenizer).to(self._device), answer)

    @property
    def _device(self) -> torch.device:
        return next(self.encoder.parameters()).device

    @property
    def alone(self) -> bool:
        """Whether the network gets one row a call; found out by asking it about two short rows."""
        return self._how_asked.alone

    def __call__(self, rows: Sequence[Any]) -> np.ndarray:
        """Probabilities (batch, classes) of a list of rows; one score a row, (batch,), if the network gives one."""

        def asked(batch: TokenBatch) -> torch.Tensor:
            logits = self._logits(batch.mask, input_ids=batch.ids)
            return probabilities(checked_logits(logits, len(batch.rows)), self.multi_label)

        return row_by_row(self, rows, asked)

    def tokenize(self, row: Any) -> tuple[list[int], list[int | None]]:
        """Ids of a row's sub-words, special ones among them, and the index of the word that each belongs to.

        Raises
        ------
        ValueError
            If it has more sub-words than `max_length`; with `truncate`, the rest is cut off with a warning.
        """
        return subwords_of(self.tokenizer, row, self.max_length, truncate=self.truncate)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Vectors of sub-words (batch, length, size), without positions; ValueError if it refuses them (BART, T5)."""
        why = self._how_asked.no_vectors
        if why is not None:
            raise ValueError(
                f"{type(self.encoder).__name__} cannot be entered at its word vectors ({why}), so GradientXInput, LRP "
                "and Captum's methods do not work: take metfa.text.LEMNA, metfa.text.LIME or metfa.text.Occlusion"
            )
        return self.encoder.get_input_embeddings()(ids)  # pyright: ignore[reportCallIssue]

    def forward_embedded(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits (batch, classes) of vectors of sub-words, or one score a row, (batch,).

        Raises
        ------
        ValueError
            If rows are filled up to one length: `mask` must be true everywhere.
        """
        if not bool(mask.all()):
            raise ValueError(
                "`mask` must be true everywhere, got rows that are filled up to one length: many networks read the "
                "class from the last place, so ask about rows of equal length together"
            )
        return self._logits(mask, inputs_embeds=embeddings)

    def pooled(self, rows: Sequence[Any]) -> np.ndarray:
        """Mean over the sub-words' last hidden states, (batch, size): the input of `head`, to fit one on."""
        return row_by_row(self, rows, lambda batch: self._pooled(batch.mask, input_ids=batch.ids))

    def _logits(self, mask: torch.Tensor, **rows: torch.Tensor) -> torch.Tensor:
        if self.head is None:
            logits = getattr(self._called(mask, **rows), "logits", None)
            if logits is None:
                raise ValueError(
                    f"{type(self.encoder).__name__} gives no logits: pass `head=`, or load it as an "
                    "AutoModelForSequenceClassification"
                )
        else:
            logits = self.head(self._pooled(mask, **rows))
        return logits[:, 0] if logits.ndim == 2 and logits.shape[1] == 1 else logits

    def _pooled(self, mask: torch.Tensor, **rows: torch.Tensor) -> torch.Tensor:
        return _mean_of(self._called(mask, **rows))

    def _called(self, mask: torch.Tensor, **rows: torch.Tensor) -> Any:
        """The network's answer to rows of equal length: all sub-words are read."""
        known = inspect.signature(self.encoder.forward).parameters
        given = {"attention_mask": mask.to(torch.int64), "token_type_ids": self._short.token_types(mask)}
        given = {name: given[name] for name in given if name in known and given[name] is not None}
        with end_token_expected(self.tokenizer):
            return self.encoder(**rows, **given)

    @cached_property
    def _short(self) -> ShortRow:
        return short_row(self.tokenizer, self.max_length)


def _mean_of(output: Any) -> torch.Tensor:
    """Mean of the last hidden states over the sub-words, (batch, size)."""
    return output.last_hidden_state.mean(1)


def from_transformers(
    tokenizer: Any,
    model: torch.nn.Module,
    *,
    head: Any = None,
    max_length: int | None = None,
    truncate: bool = False,
    multi_label: bool | None = None,
    class_names: Sequence[str] | None = None,
) -> Transformer:
    """Text model made of a tokeniser and a network of Hugging Face's transformers; nothing is downloaded.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
        It knows which characters a sub-word was made of; slow tokenisers do not.
    model : PreTrainedModel
        One for sequence classification, or a bare one with a `head`: encoders (BERT, RoBERTa, DeBERTa, XLNet, ...),
        decoders (GPT-2, Llama, Mistral, Qwen2, Gemma, OPT, ...), BART and T5. Networks that refuse `inputs_embeds`
        (BART, T5) have no `GradientXInput` and no `LRP`; every other method works.
    head : callable or fitted linear classifier, optional
        From the mean of the last hidden states over a row's sub-words, (batch, size), to logits (batch, classes): a
        module or function in torch, or a fitted ``LogisticRegression`` of scikit-learn. `Transformer.pooled` gives the
        vectors to fit one on. None: the model's own logits.
    max_length : int, optional
        Largest number of sub-words of a row, with special ones. None: the lower limit of tokeniser and model.
    truncate : bool
        Whether longer texts are cut off there, with an `UnreadWordsWarning`. By default they are an error: unread words
        would be explained like others. If a text nearly fills the limit, noisy copies may exceed it: shorten the text,
        or accept that copies are cut off.
    multi_label : bool, optional
        Whether classes do not exclude each other: their probabilities are then the sigmoids of the logits, not their
        softmax. None: as in the model's configuration (`problem_type`); False with a `head`.
    class_names : sequence of str, optional
        None: those of the model's configuration or of the classifier, if there are any.

    Returns
    -------
    Transformer
        A list of texts (or lists of tokens) -> probabilities (batch, classes); an `EmbeddedTextModel`.

    Raises
    ------
    TypeError
        If the tokeniser is a slow one, or an argument of the wrong kind.
    ValueError
        If a scikit-learn classifier is not fitted, was fitted to vectors of another size, or its probabilities are not
        the softmax of its linear scores; if `max_length` exceeds the model's positions, if there are not as many
        `class_names` as classes, or if the model is a regression of several numbers.

    Notes
    -----
    The probabilities are those that the network gives to the tokenised text alone. Rows of one call have equally many
    sub-words: decoders read the class from the last place, so a row that is filled up would get another score. One row
    a call gets a network that refuses several (GPT-2 without a padding token), or answers two rows in another way.

    A logistic head on a frozen encoder, with the sentences and labels of your task:

    .. code-block:: python

        encoder = AutoModel.from_pretrained(folder)
        vectors = from_transformers(tokenizer, encoder).pooled(sentences)
        head = LogisticRegression().fit(vectors, labels)
        model = from_transformers(tokenizer, encoder, head=head)
    """
    if not getattr(tokenizer, "is_fast", False):
        raise TypeError(
            f"`tokenizer` must be a fast one, which knows the place of each sub-word in the text, got "
            f"{type(tokenizer).__name__}"
        )
    if not (isinstance(model, torch.nn.Module) and hasattr(model, "get_input_embeddings")):
        raise TypeError(f"`model` must be a model of transformers, got {type(model).__name__}")
    for name, value in (("truncate", truncate), ("multi_label", multi_label)):
        if not isinstance(value, bool) and not (name == "multi_label" and value is None):
            raise TypeError(f"`{name}` must be True or False, got {type(value).__name__}: {value!r}")
    layer = in_torch(head, model)
    names = _checked_names(class_names, model, head, layer)
    longest = _longest(tokenizer, model, max_length)
    several = _trained_on_several_labels(model) if head is None and multi_label is None else bool(multi_label)
    return Transformer(tokenizer, model, layer, longest, names, truncate, several)


def _longest(tokenizer: Any, model: torch.nn.Module, asked: Any) -> int:
    """Largest number of sub-words of a row: the number asked for, or as many as both tokeniser and model can take."""
    positions = _positions(model)
    if asked is None:
        limit = tokenizer.model_max_length
        known = positions or getattr(model.config, "max_position_embeddings", None) or UNLIMITED
        return min(limit, known if known > 0 else UNLIMITED, UNLIMITED)  # XLNet says -1
    positive_int(asked, "max_length", 3)
    if positions is not None and asked > positions:
        raise ValueError(
            f"`max_length` must be at most the {positions} positions that {type(model).__name__} has, got {asked}"
        )
    return int(asked)


def _positions(model: torch.nn.Module) -> int | None:
    """Number of places that the model has a vector for; None if it handles positions in another way.

    RoBERTa and its like count from behind the padding's index, so the first vectors of their table are not places.
    """
    for name, part in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, torch.nn.Embedding):
            return part.num_embeddings - (0 if part.padding_idx is None else part.padding_idx + 1)
    return None


def _trained_on_several_labels(model: Any) -> bool:
    """Whether the model was trained to decide on each class by itself."""
    kind = getattr(model.config, "problem_type", None)
    if kind == "regression" and getattr(model.config, "num_labels", 1) > 1:
        raise ValueError(
            f"`model` predicts {model.config.num_labels} numbers that are no classes (`problem_type` is 'regression'): "
            "give metfa a function list of texts -> the number to explain, (batch,)"
        )
    return kind == "multi_label_classification"


def _checked_names(given: Any, model: Any, head: Any, layer: Any) -> tuple[str, ...] | None:
    """Names of the classes: those given, or of the model or the classifier; as many as there are classes, if known."""
    if given is None:
        found = _names_of(model, head)
        return None if found is None else tuple(map(str, found))
    if isinstance(given, str) or not hasattr(given, "__len__"):
        raise TypeError(f"`class_names` must be a sequence of texts, got {type(given).__name__}: {given!r}")
    names = tuple(map(str, given))
    n = getattr(model.config, "num_labels", None) if head is None else getattr(layer, "out_features", None)
    if n is not None and len(names) != n:
        raise ValueError(f"`class_names` must be {n}, as many as there are classes, got {len(names)}: {names}")
    return names


def _names_of(model: Any, head: Any) -> Sequence[Any] | None:
    if head is not None:
        return getattr(head, "classes_", None)
    names = getattr(model.config, "id2label", None)
    return [names[index] for index in sorted(names)] if names else None
