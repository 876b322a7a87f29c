"""Whether this server's code can go on with a saved run, and check what people edit in it."""
