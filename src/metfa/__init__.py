"""Error bars for feature attributions."""
