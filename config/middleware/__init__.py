"""Middleware of the whole site, one per module."""
