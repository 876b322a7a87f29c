"""Tells whether this server's code can go on with a saved run, and checks what people edit in it."""
