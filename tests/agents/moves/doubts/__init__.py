"""Effects of which nobody knows what became: what is asked, and what workers say late."""
