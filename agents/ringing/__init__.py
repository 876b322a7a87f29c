"""Doorbells seen from outside: how many wait in the queues, and which runs were rung for."""
