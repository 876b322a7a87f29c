"""Requests to addresses that people entered: checked, signed and sent."""
