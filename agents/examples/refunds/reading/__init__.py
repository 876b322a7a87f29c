"""Reading a mail that a stranger wrote."""

MAX_MAIL = 2_000_000  # bytes that are read of a mail
