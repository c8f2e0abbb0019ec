"""Benchmarks, named by their claims; ``python -m benchmarks`` runs all of them, each in its own process."""
