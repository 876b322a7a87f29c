"""The web process: the server's protocol, bounds on what it reads, static files and error pages."""
