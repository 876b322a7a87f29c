"""The audit: seals events, verifies the seals against the database, and exports events with their proofs.

The arithmetic (checkpoints.seals) is pure, so that the same code verifies the database (`database`) and, on any
machine, an export (`verify_export`).
"""
