"""What pages and the API both read: who may see a run, and a run as its page tells it."""
