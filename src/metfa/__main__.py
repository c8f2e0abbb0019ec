"""`python -m metfa` is the command line."""

from metfa.cli import main

if __name__ == "__main__":
    main()
