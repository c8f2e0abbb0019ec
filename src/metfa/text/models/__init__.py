"""Text classifiers in torch: one that comes with metfa, your own from a file, and those of Hugging Face.

Importing this package imports torch.
"""

from metfa.text.models._load import load_model
from metfa.text.models._tokens import tokens_of
from metfa.text.models.bilstm import BiLSTM
from metfa.text.models.embedded import EmbeddedTextModel
from metfa.text.models.trained import TrainedBiLSTM, save_model
from metfa.text.models.transformer import Transformer, from_transformers

__all__ = [
    "BiLSTM",
    "EmbeddedTextModel",
    "TrainedBiLSTM",
    "Transformer",
    "from_transformers",
    "load_model",
    "save_model",
    "tokens_of",
]
