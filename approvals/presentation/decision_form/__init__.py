"""The form of a decision: the actions, what is chosen for each, and what that would do."""
