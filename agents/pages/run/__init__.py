"""The page of a run, with its head, timeline, inspector and tables."""
