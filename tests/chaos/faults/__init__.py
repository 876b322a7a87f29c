"""Breaks it: the ways to break and to heal, the faults, and the schedule of them."""
