"""One worker's turn with a run (a slice): the session's data, the run's path, and reuse of earlier work."""
