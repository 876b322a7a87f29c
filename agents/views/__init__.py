"""Pages of runs: the list, one run with its live timeline, one checkpoint."""
