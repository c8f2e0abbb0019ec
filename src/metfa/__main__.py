"""`python -m metfa` is the command line."""

from metfa.cli import main

main()
