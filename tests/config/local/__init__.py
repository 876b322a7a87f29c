"""`make run`: its parts, how they start, come back and end."""
