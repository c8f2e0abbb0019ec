"""A Hugging Face encoder as a text model: words in, probabilities out, and its word vectors between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from metfa._validation import positive_int
from metfa.text._words import Words, words_of
from metfa.text.models._embedded import probabilities_of_rows, row_by_row

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
    """

    tokenizer: Any = field(repr=False)
    encoder: torch.nn.Module = field(repr=False)
    head: Callable[[torch.Tensor], torch.Tensor] | None = field(repr=False)
    max_length: int
    class_names: tuple[str, ...] | None

    @property
    def module(self) -> torch.nn.Module:
        """Encoder and head together: what is put into evaluation mode while it is asked."""
        parts = [part for part in (self.encoder, self.head) if isinstance(part, torch.nn.Module)]
        together = torch.nn.ModuleList(parts)
        together.training = any(part.training for part in parts)
        return together

    def __call__(self, rows: Sequence[Any]) -> np.ndarray:
        """Probabilities (batch, classes) of a list of rows; one score a row, (batch,), if the network gives one."""
        return probabilities_of_rows(self, rows)

    def tokenize(self, row: Any) -> tuple[list[int], list[int | None]]:
        """Ids of a row's sub-words, special ones among them, and the index of the word that each belongs to.

        Sub-words beyond `max_length` are cut off, as the network cannot read them.
        """
        settings = {"truncation": True, "max_length": self.max_length}
        if isinstance(row, str):
            encoded = self.tokenizer(row, return_offsets_mapping=True, **settings)
            return list(encoded["input_ids"]), _words_at(row, encoded["offset_mapping"])
        if not row:
            return self.tokenize("")
        encoded = self.tokenizer(list(words_of(row).words), is_split_into_words=True, **settings)
        return list(encoded["input_ids"]), list(encoded.word_ids())

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
        """Mean over the sub-words' last hidden states, (batch, size): what `head` is given, to fit one on."""
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
    class_names: Sequence[str] | None = None,
) -> Transformer:
    """Text model made of a tokeniser and an encoder of Hugging Face's transformers; nothing is downloaded.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerFast
        It tells which characters a sub-word was made of; the slow ones do not.
    model : PreTrainedModel
        An encoder that takes `inputs_embeds` (BERT, DistilBERT, RoBERTa, ELECTRA, MPNet, MiniLM, ...): for sequence
        classification, or a bare one with a `head`. Not a decoder, which reads the class from the last place of a row,
        wherever the row ends.
    head : callable or fitted linear classifier, optional
        From the mean of the last hidden states over a row's sub-words, (batch, size), to logits (batch, classes): a
        module or function in torch, or a fitted ``LogisticRegression`` of scikit-learn. `Transformer.pooled` gives the
        vectors to fit one on. None: the model's own logits.
    max_length : int, optional
        Sub-words read of a row, special ones counted. Words behind are not read and get no attribution. None: the
        tokeniser's limit, or where it has none the number of positions that the model has.
    class_names : sequence of str, optional
        None: those in the model's configuration or of the classifier, where there are any.

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
        If a scikit-learn classifier is not fitted.

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
    if max_length is None:
        limit = tokenizer.model_max_length
        max_length = limit if limit < UNLIMITED else getattr(model.config, "max_position_embeddings", UNLIMITED)
    if class_names is None:
        class_names = _names_of(model, head)
    names = None if class_names is None else tuple(map(str, class_names))
    return Transformer(tokenizer, model, _in_torch(head, model), positive_int(max_length, "max_length", 3), names)


def _names_of(model: Any, head: Any) -> Sequence[Any] | None:
    if head is not None:
        return getattr(head, "classes_", None)
    names = getattr(model.config, "id2label", None)
    return [names[index] for index in sorted(names)] if names else None


def _in_torch(head: Any, model: torch.nn.Module) -> Any:
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
    if len(weights) == 1:  # two classes, and the logit of the second
        weights, bias = np.concatenate([0 * weights, weights]), np.concatenate([0 * bias, bias])
    layer = torch.nn.Linear(weights.shape[1], len(weights), device="meta")
    like = next(model.parameters())
    state = {"weight": torch.from_numpy(weights), "bias": torch.from_numpy(bias)}
    layer.load_state_dict(state, assign=True)
    return layer.to(device=like.device, dtype=like.dtype).requires_grad_(False).eval()


def _words_at(text: str, offsets: Sequence[tuple[int, int]]) -> list[int | None]:
    """The word that each range of characters lies in: the one that it shares most characters with."""
    try:
        cut = words_of(text)
    except ValueError:  # a text whose words are all left out
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
