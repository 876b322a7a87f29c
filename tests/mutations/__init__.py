"""Sixty mutations of production code, drawn at random, and which of them the tests catch.

`python -m tests.mutations draw --seed 7` draws a list, `… probe` learns in one run of all tests which tests reach each
place, and `… plant` plants each by itself in a copy of the last commit and runs those tests until one fails.
`make mutants` plants all again; it fails where a mutation that was caught escapes, or where its place is gone: see
.listed for what to write then. ARGS="3 17" plants these two.
"""
