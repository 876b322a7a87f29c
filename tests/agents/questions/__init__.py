"""Questions that people ask an agent at an open gate."""
