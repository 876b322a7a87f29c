"""Executing a step: the call, its retries, what a refused output goes back to, and asking a person when it fails."""
