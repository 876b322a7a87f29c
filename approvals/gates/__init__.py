"""Gates: opened, read, listed, remarked on and closed."""
