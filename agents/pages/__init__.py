"""Pages of runs, checkpoints, agents and tokens: what one page needs, its view and its read model, lies together."""
