"""Moving a run from its page: shown first, then ordered."""
