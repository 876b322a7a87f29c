"""A run's page, and the parts of it that are reloaded."""
