"""Programs and web processes that fall silent, die, or come at once."""
