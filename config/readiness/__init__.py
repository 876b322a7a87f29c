"""Asking the parts of the installation how they are, without waiting for one that hangs."""
