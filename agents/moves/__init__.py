"""Moving a run by a person's order: rewind, edit, fork, cancel, and what that would do."""
