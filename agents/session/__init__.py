"""One worker's turn with a run: what it holds in hand, and what is known of the run's path."""
