"""Several gates open at once in one run: what depends on a decision waits for it, and nothing else does."""
