"""Policies: who may decide, how many must agree, and what else is asked of them."""
