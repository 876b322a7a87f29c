"""What an agent's author wrote: classes, decorators, plans, and the registry that knows them."""
