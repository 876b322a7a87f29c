"""One checkpoint on a page: its state, name, notes and secrets, and two side by side."""
