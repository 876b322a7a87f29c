"""Live pages: the socket, access to facts, and the facts that a reconnecting page has missed."""
