"""Runs over the API: reading, comparing, verifying and moving them."""
