"""Impacts, charts and times, in words and as drawings."""
