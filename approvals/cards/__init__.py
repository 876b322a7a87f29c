"""Cards, which gates show, with their actions, quotes, charts and preconditions. Pure."""
