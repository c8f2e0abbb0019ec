"""Image classifiers and segmentation networks that take pixels in [0, 1]: load one by name, or wrap your own.

Importing this package imports torch and Pillow; timm and torchvision are imported only by a `load` that names them.
"""

from metfa.models._folding import fold_batch_norm
from metfa.models._load import load, load_segmentation
from metfa.models._loaded_model import LoadedModel
from metfa.models._normalised import Normalised
from metfa.models._outputs import Selected, TwoClasses
from metfa.models._preprocess import CentreCrop, WholePicture
from metfa.models.efficientnet_lite import EfficientNetLite

__all__ = [
    "CentreCrop",
    "EfficientNetLite",
    "LoadedModel",
    "Normalised",
    "Selected",
    "TwoClasses",
    "WholePicture",
    "fold_batch_norm",
    "load",
    "load_segmentation",
]
