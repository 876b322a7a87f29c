"""Gates in a run: opened, opened again, and what an approval writes into the state."""
