"""How a state lies in rows and chunks: drafted, packed, put together again."""
