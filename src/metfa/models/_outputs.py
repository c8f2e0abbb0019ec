"""`Selected` and `TwoClasses`: wrappers that let a model give one array of class scores."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from metfa._arrays import is_array

__all__ = ["Selected", "TwoClasses"]


class Selected(nn.Module):
    """A model with several outputs, of which one is used: ``model(x)["logits"]``, ``model(x)[0]``.

    Every explainer takes it, also those that look at the layers (`CAM`, `ScoreCAM`, `LRP`) and those of other
    libraries, which do not take a function.

    Parameters
    ----------
    model : torch.nn.Module
        Returns a dictionary, a tuple, a list, or an object with attributes (such as the outputs of `transformers`). It
        is kept as the attribute ``model``; both are in its mode.
    output : str or int
        Key, name of the attribute, or index of the output that holds the scores.

    Examples
    --------
    >>> import torch
    >>> from metfa.models import Selected
    >>> class TwoHeads(torch.nn.Module):
    ...     def forward(self, x):
    ...         return {"logits": x.flatten(1), "depth": x.mean()}
    >>> Selected(TwoHeads(), "logits")(torch.zeros(2, 3, 1, 1)).shape
    torch.Size([2, 3])
    """

    model: torch.nn.Module
    output: str | int
    training: bool

    def __init__(self, model: nn.Module, output: str | int) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise TypeError(
                f"`model` must be a torch.nn.Module, got {type(model).__name__}: of a function write "
                f"`lambda inputs: model(inputs)[{output!r}]`"
            )
        if not isinstance(output, str | int) or isinstance(output, bool):
            raise TypeError(f"`output` must be a name or an index, got {type(output).__name__}: {output!r}")
        self.model, self.output = model, output
        self.training = getattr(model, "training", False)

    def forward(self, x: Any) -> Any:
        """The output of the model that is used."""
        answer = self.model(x)
        if is_array(answer):
            raise TypeError(f"`model` returns one array of shape {tuple(answer.shape)}: give the model itself")
        named = isinstance(answer, Mapping)
        if isinstance(self.output, str) and not named and hasattr(answer, self.output):
            return getattr(answer, self.output)
        try:
            return answer[self.output]
        except (KeyError, IndexError, TypeError):
            got = type(answer).__name__
            if named:
                got += f" with {', '.join(map(repr, answer))}"
            elif isinstance(answer, tuple | list):
                got += f" of {len(answer)}"
            raise ValueError(f"`output` {self.output!r} is no output of the model, which returns {got}") from None


class TwoClasses(nn.Module):
    """A model that gives one logit for two classes, as one that gives a score for each.

    The scores are (-logit / 2, logit / 2). Their difference is the logit, so a softmax gives the same probabilities as
    the sigmoid of the logit. The class predicted is then found, changes of it are counted, and explainers by
    probabilities (`RISE`, `LIME`, `MASK`, ...) can be used.

    Parameters
    ----------
    model : torch.nn.Module
        Returns logits of class 1, of shape (batch, 1) or (batch,). It is kept as the attribute ``model``; both are in
        its mode.

    Examples
    --------
    >>> import torch
    >>> from metfa.models import TwoClasses
    >>> class Logit(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.sum(1, keepdim=True)
    >>> TwoClasses(Logit())(torch.tensor([[1.0, 1.0]]))
    tensor([[-1.,  1.]])
    """

    training: bool

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise TypeError(f"`model` must be a torch.nn.Module, got {type(model).__name__}")
        self.model = model
        self.training = getattr(model, "training", False)

    def forward(self, x: Any) -> torch.Tensor:
        """Scores (batch, 2) of class 0 and class 1."""
        logit = self.model(x)
        if not isinstance(logit, torch.Tensor) or logit.ndim not in (1, 2) or logit.shape[1:].numel() != 1:
            got = f"shape {tuple(logit.shape)}" if isinstance(logit, torch.Tensor) else type(logit).__name__
            raise ValueError(f"`model` must return one logit for each input, (batch, 1) or (batch,), got {got}")
        half = logit.reshape(-1, 1) / 2
        return torch.cat([-half, half], dim=1)
