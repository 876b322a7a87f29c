"""Live pages: the socket, who may hear what, and what a reconnecting page has missed."""
