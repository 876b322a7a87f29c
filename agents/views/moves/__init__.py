"""Orders to a run from its page, each with a preview."""
