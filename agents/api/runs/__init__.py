"""Runs over the API: read, compared, verified and moved."""
