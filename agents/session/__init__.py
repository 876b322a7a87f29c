"""One worker's turn with a run: the session's data, the run's path, and reuse of earlier work."""
