"""LangGraph on Holdpoint: a graph's threads as runs that people can see, approve, edit and rewind."""
