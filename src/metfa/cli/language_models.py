"""Causal language models by name, from a folder, or from a function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metfa._base.import_path import imported
from metfa._base.warnings import ModelStateWarning, warn
from metfa.cli.run import device_of
from metfa.text.answers.prompts import Prompts

__all__ = ["ChatTemplate", "loaded_language_model"]


@dataclass(frozen=True)
class ChatTemplate:
    """The chat template of a tokeniser, with one message of a user in it."""

    tokenizer: Any = field(repr=False)
    message: Prompts

    def __post_init__(self) -> None:
        if not getattr(self.tokenizer, "chat_template", None):
            raise ValueError("`--chat`: the tokeniser of this model has no chat template: leave --chat out")

    def __call__(self, kept: list[str]) -> str:
        """The prompt with these sources."""
        said = [{"role": "user", "content": self.message.text(kept)}]
        return self.tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)


def loaded_language_model(
    name: str, *, device: str, bfloat16: bool, random_weights: bool, download: bool, seed: int
) -> tuple[Any, Any]:
    """Model and tokeniser, in evaluation mode; ``package.module:callable`` is called and returns both.

    Raises
    ------
    ValueError
        If there is no such model on this machine, and `download` is off.
    """
    place = device_of(device)
    if ":" in name and not Path(name).exists():
        made = imported(name, "`--model`")
        made = made() if callable(made) else made
        if not isinstance(made, tuple) or len(made) != 2:
            raise TypeError(f"`--model` {name!r} must be a function that returns a model and its tokeniser, as a tuple")
        if random_weights:
            raise ValueError("`--random-weights` is for models of Hugging Face: leave it out")
        model, tokenizer = made
    else:
        model, tokenizer = _of_hugging_face(name, random_weights=random_weights, download=download, seed=seed)
    model = model.bfloat16() if bfloat16 else model
    return model.to(place).eval(), tokenizer


def _of_hugging_face(name: str, *, random_weights: bool, download: bool, seed: int) -> tuple[Any, Any]:
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("`metfa explain-answer` needs transformers: pip install transformers") from error
    settings: dict[str, Any] = {} if download else {"local_files_only": True}
    try:
        with _quiet(transformers.utils.logging):
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **settings)
            if random_weights:
                warn(
                    "`--random-weights`: the network is untrained, so what it says shows nothing but how metfa works",
                    ModelStateWarning,
                )
                import torch

                config = transformers.AutoConfig.from_pretrained(name, **settings)
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(seed)
                    model = transformers.AutoModelForCausalLM.from_config(config)
            else:
                model = transformers.AutoModelForCausalLM.from_pretrained(name, **settings)
    except (OSError, ValueError) as error:
        why = " ".join(str(error).split())[:300]
        instead = "" if download else "; a model that is not on this machine is loaded with --allow-download"
        raise ValueError(f"`--model` {name!r} cannot be loaded: {why}{instead}") from error
    return model, tokenizer


@contextmanager
def _quiet(logging: Any) -> Iterator[None]:
    """Without the bars and advice of transformers, which are not ours."""
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
