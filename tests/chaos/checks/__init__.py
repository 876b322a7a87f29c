"""Checks what is left: the dump, the checks, the counts, and violations that are planted to try the checks."""
