"""Runs as such: starting, listing, activity and statistics."""
