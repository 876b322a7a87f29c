"""Doorbells: messages that ask a worker to look at a run, sent and counted."""
