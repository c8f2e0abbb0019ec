"""One script for each table and figure of the paper; RESULTS.md and its neighbours hold the results."""
