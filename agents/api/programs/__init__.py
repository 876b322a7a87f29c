"""The API for external programs that work on runs."""
