"""Orders of a person to a run: rewind, edit, fork, cancel, and the impact of each."""
