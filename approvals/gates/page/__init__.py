"""Reads what a gate's page shows: the gate, and who is on it."""
