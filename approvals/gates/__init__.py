"""Gates: opening, reading, listing, comments, secrets and closing."""
