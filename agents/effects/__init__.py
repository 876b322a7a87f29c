"""Effects: authorised, performed at most once per key, read back, settled and undone."""
