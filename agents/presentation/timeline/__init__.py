"""A run's timeline: its rows, marks, words and graph."""
