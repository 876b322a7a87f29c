"""A shop in versions, of which one is deployed at a time. SENT is what it did in the outside world, as text."""

SENT: list[str] = []
