"""What every room stands on: lazy names, warnings, checks, provenance; the standard library and NumPy alone."""
