"""Reads mails of strangers: parses them, finds order numbers, and detects hidden or odd text."""

MAX_MAIL = 2_000_000  # bytes that are read of a mail
