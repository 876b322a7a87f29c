"""The HTTP API, asked over Django's client."""
