"""How a model is asked: its scores and gradients, its state put back, its inputs changed."""
