"""Children of a run: the runs that its steps start, and whose results they wait for. No worker is held meanwhile."""
