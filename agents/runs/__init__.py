"""Runs as such: starting one, listing them, what happened in one."""
