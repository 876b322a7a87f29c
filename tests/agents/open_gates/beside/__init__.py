"""What else a run does while a gate is open beside it: it waits, is sent back, acts, fails and ends."""
