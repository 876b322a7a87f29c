"""Reading a mail that a stranger wrote."""
