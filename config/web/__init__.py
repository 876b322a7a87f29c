"""The web process: how it is started, and how it ends."""

GRACE = 10  # seconds that requests under way have to end when the process is asked to
