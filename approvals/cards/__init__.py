"""What a gate shows: a card with its actions, quotes, charts and preconditions. Pure."""
