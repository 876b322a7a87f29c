"""The web: what a request meets before and after the pages."""
