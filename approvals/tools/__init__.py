"""Registered tools: the schemas that may be registered, and the drawing of actions by them."""
