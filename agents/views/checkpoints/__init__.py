"""Pages of one checkpoint: its state, name, notes and secrets, and two side by side."""
