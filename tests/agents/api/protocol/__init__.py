"""What the API holds to whatever is asked: bodies, keys, limits, its own description."""
