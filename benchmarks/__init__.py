"""Benchmarks, each named by what it claims; ``python -m benchmarks`` runs them all, each in a process of its own."""
