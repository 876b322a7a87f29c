"""Waits inside a step: for a time, or for a signal from outside. No worker is held meanwhile."""
