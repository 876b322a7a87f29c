"""Runs of the store: started, forked, held, noted on, looked back over."""
