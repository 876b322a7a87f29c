"""Queries that pages and the API share: the permission to see a run, and the facts on its page."""
