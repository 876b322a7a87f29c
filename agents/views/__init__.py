"""Pages of runs, checkpoints, agents and tokens."""
