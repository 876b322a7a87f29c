"""Seals: Merkle trees over events, chained, and checked without a database."""
