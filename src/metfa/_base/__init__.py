"""What all of metfa may use: lazy names, warnings, checks, provenance; only the standard library and NumPy."""
