"""Several actions in a gate, each with its verdict."""
