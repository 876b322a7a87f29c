"""The page of a run that started others, and what is said before it moves."""
