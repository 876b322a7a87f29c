"""Data of runs besides their checkpoints: plans, names, holds and notes."""
