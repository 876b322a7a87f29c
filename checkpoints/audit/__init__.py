"""The audit: what seals say about events, how that is checked, and how it is carried elsewhere.

The arithmetic (checkpoints.seals) is pure, so that an export is verified elsewhere by the code that verifies the
database. `walk` reads the database, `proof` an export.
"""
