"""Versions of agents, of which each test deploys those that it names."""

SENT: list[str] = []  # what their effects did in the world outside
