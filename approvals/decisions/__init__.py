"""Decisions: what a reviewer sends, what it would make of the proposal, and how it is taken."""
