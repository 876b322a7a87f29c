"""Uses the installation: people with tokens, a page, and a program elsewhere."""
