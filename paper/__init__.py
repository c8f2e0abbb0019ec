"""One script for each table and figure of the paper about images; see RESULTS.md for what they gave."""
