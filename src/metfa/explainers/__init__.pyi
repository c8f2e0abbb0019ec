from metfa.explainers.gradient import Gradient as Gradient
from metfa.explainers.heatmaps import heatmap as heatmap
from metfa.explainers.rise import RISE as RISE
from metfa.explainers.smooth_grad import SmoothGrad as SmoothGrad
