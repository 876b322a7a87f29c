"""Messages by Redis: the broker's connection, the canary that shows they arrive, and what beat sends when."""
