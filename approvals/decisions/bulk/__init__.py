"""Decides several gates of one kind by one order: each by the one way to decide, with a result of its own."""
