"""The docs, and what writes or draws parts of them."""
