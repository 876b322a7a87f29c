"""Tools that people registered: their versions, what may be registered, and what is asked under them."""
