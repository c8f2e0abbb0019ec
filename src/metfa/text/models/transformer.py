"""A Hugging Face encoder as a text model: words in, probabilities out, and its word vectors between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from metfa._base.validation import positive_int
from metfa._base.warnings import UnreadWordsWarning, warn
from metfa.calls.answers import softmax
from metfa.text.models.embedded import probabilities_of_rows, row_by_row
from metfa.text.words import Words, words_of

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

    def __call__(self, rows: Sequence[Any]) -> np.ndarray:
        """Probabilities (batch, classes) of a list of rows; one score a row, (batch,), if the network gives one."""
        return probabilities_of_rows(self, rows)

    def tokenize(self, row: Any) -> tuple[list[int], list[int | None]]:
        """Ids of a row's sub-words, special ones among them, and the index of the word that each belongs to.

        Raises
        ------
        ValueError
            If it has more sub-words than `max_length`; with `truncate`, the rest is cut off with a warning.
        """
        if not isinstance(row, str) and not row:
            return self.tokenize("")
        by_words = not isinstance(row, str)
        pieces = self.tokenizer(
            list(words_of(row).words) if by_words else row,
            is_split_into_words=by_words,
            truncation=True,
            max_length=self.max_length,
            return_overflowing_tokens=True,
        ).encodings
        word_index = [list(piece.word_ids) if by_words else _words_at(row, piece.offsets) for piece in pieces]
        if len(pieces) > 1:
            self._check_all_read(row, word_index)
        return list(pieces[0].ids), word_index[0]

    def _check_all_read(self, row: Any, word_index: Sequence[Sequence[int | None]]) -> None:
        """Refuse (with `truncate`: warn of) a row longer than one piece; only the first of `word_index` is read."""
        limit = f"{self.max_length:,} sub-words that the network reads, special ones counted"
        if self.truncate:  # the same words each time, so that a call warns once
            warn(
                f"a text has more than the {limit}: the rest is cut off (`truncate=True`), and words "
                "there cannot matter",
                UnreadWordsWarning,
            )
            return
        words = {index for piece in word_index for index in piece if index is not None}
        unread = len(words.difference(word_index[0]))
        raise ValueError(
            f"a text has more than the {limit}: {unread:,} of its {len(words):,} words would not be read. Shorten it, "
            "with some room for noise, whose words may have more sub-words, or write "
            f"`from_transformers(..., truncate=True)` to have the rest cut off. The text: {row!r:.80}"
        )

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Vectors of sub-words (batch, length, size); positions are added by the network later."""
        return self.encoder.get_input_embeddings()(ids)  # pyright: ignore[reportCallIssue]

    def forward_embedded(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits (batch, classes) of vectors of sub-words, or one score a row, (batch,)."""
        if self.head is None:
            logits = getattr(self._called(embeddings, mask), "logits", None)
            if logits is None:
                raise ValueError(
                    f"{type(self.encoder).__name__} gives no logits: pass `head=`, or load it as an "
                    "AutoModelForSequenceClassification"
                )
        else:
            logits = self.head(self._pooled(embeddings, mask))
        return logits[:, 0] if logits.ndim == 2 and logits.shape[1] == 1 else logits

    def pooled(self, rows: Sequence[Any]) -> np.ndarray:
        """Mean over the sub-words' last hidden states, (batch, size): the input of `head`, to fit one on."""
        return row_by_row(self, rows, lambda batch: self._pooled(self.embed(batch.ids), batch.mask))

    def _called(self, embeddings: torch.Tensor, mask: torch.Tensor) -> Any:
        return self.encoder(inputs_embeds=embeddings, attention_mask=mask.to(torch.int64))

    def _pooled(self, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states = self._called(embeddings, mask).last_hidden_state
        weights = mask[..., None].to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1).clamp(min=1)


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
    """Text model made of a tokeniser and an encoder of Hugging Face's transformers; nothing is downloaded.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
        It knows which characters a sub-word was made of; slow tokenisers do not.
    model : PreTrainedModel
        An encoder that takes `inputs_embeds` (BERT, DistilBERT, RoBERTa, ELECTRA, MPNet, MiniLM, ...): one for sequence
        classification, or a bare one with a `head`. Not a decoder: it reads the class from the last place of the
        filled-up row, even if the row ends before.
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
        A list of texts (or of lists of tokens) -> probabilities (batch, classes); an
        `EmbeddedTextModel`, which `GradientXInput` explains.

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
    layer = _in_torch(head, model)
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
        return min(limit, known, UNLIMITED)
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


def _in_torch(head: Any, model: Any) -> Any:
    """A linear classifier of scikit-learn as a layer in the precision and on the device of the model."""
    if head is None or isinstance(head, torch.nn.Module):
        return head
    if not hasattr(head, "predict_proba"):
        if not callable(head):
            raise TypeError(f"`head` must be a module, a function or a fitted classifier, got {type(head).__name__}")
        return head
    if not hasattr(head, "coef_"):
        raise ValueError(f"`head` must be a fitted linear classifier, got {head!r}, which has no `coef_`")
    weights, bias = np.asarray(head.coef_), np.asarray(head.intercept_)
    size = getattr(model.config, "hidden_size", None)
    if size is not None and weights.shape[1] != size:
        raise ValueError(
            f"`head` must be fitted to the {size} numbers of a text that `Transformer.pooled` gives, got one fitted to "
            f"{weights.shape[1]}"
        )
    if len(weights) == 1:  # two classes, and the logit of the second
        weights, bias = np.concatenate([0 * weights, weights]), np.concatenate([0 * bias, bias])
    _check_softmax(head, weights, bias)
    layer = torch.nn.Linear(weights.shape[1], len(weights), device="meta")
    like = next(model.parameters())
    state = {"weight": torch.from_numpy(weights), "bias": torch.from_numpy(bias)}
    layer.load_state_dict(state, assign=True)
    return layer.to(device=like.device, dtype=like.dtype).requires_grad_(False).eval()


def _check_softmax(head: Any, weights: np.ndarray, bias: np.ndarray) -> None:
    """Raise unless the classifier's probabilities are the softmax of its scores, which is what the layer computes."""
    wanted = np.random.default_rng(0).uniform(-2, 2, (32, len(weights)))  # no probability near 0 or 1
    vectors = (wanted - bias) @ np.linalg.pinv(weights.astype(np.float64), rcond=1e-5).T
    ours, theirs = softmax(vectors @ weights.T + bias), head.predict_proba(vectors)
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, atol=1e-4):
        raise ValueError(
            f"`head` must have the softmax of its linear scores as probabilities; {head!r:.80} has others: fit a "
            "LogisticRegression, or give a function in torch from the vectors to logits"
        )


def _words_at(text: str, offsets: Sequence[tuple[int, int]]) -> list[int | None]:
    """The word of each range of characters: the one with which it shares most characters."""
    try:
        cut = words_of(text)
    except ValueError:  # all words of the text are left out
        return [None] * len(offsets)
    owner = _owners(cut)
    found: list[int | None] = []
    for start, end in offsets:
        inside = [word for word in owner[start:end] if word is not None]
        found.append(max(inside, key=inside.count) if inside else None)
    return found


def _owners(cut: Words) -> list[int | None]:
    """The word that each character of a text belongs to."""
    gaps = cut.gaps or ("",)  # of a text: never None
    owner: list[int | None] = [None] * len(gaps[0])
    for index, (word, gap) in enumerate(zip(cut.words, gaps[1:], strict=True)):
        owner += [index] * len(word) + [None] * len(gap)
    return owner
