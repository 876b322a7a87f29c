"""Seals: Merkle trees over events, chained, and checked without a database.

A *leaf* is the digest of one event over all its columns. A seal covers a range of events by the Merkle root of their
leaves (RFC 6962), and the seal before it. It also has *marks*, which its digest covers too: for each event its place,
its leaf, and two bytes for each column, by which an altered, removed or inserted row is identified.
"""
