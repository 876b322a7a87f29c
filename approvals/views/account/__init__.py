"""The pages of one's own account, except those of signing in."""
