"""Draws impacts, charts and times, and puts them into words."""
