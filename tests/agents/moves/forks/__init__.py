"""Forks: where they begin, what they take over, and how they go back."""
