"""Agent definitions: base class, decorators, plans, upcasters, and the registry of the agents that are loaded."""
