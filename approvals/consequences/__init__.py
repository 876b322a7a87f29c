"""Previews decisions at a gate: for its page, for the API, and for the check that a decision does what was shown."""
