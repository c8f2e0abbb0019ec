from pathlib import Path

if not (Path(__file__).parents[2] / "benchmarks").is_dir():  # it is in the repository only
    collect_ignore_glob = ["test_*.py"]
