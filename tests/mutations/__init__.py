"""Sixty mutations of production code, drawn at random, and which of them the tests catch: see mutations.json.

`python -m tests.mutations draw 7` draws a list with the seed 7. `… plant` plants each by itself in a copy of the last
commit and runs the nearest tests, in a process of their own, until one fails: `caught_by`. `… probe` learns in one run
of all tests which of them reach each place, so that `… plant 3 17` runs those for mutations that escaped by guess.

`make mutants` plants again and runs the test that caught each first. It fails where a mutation that was caught escapes,
or where its place is gone: .listed says what to write then, and `… check` finds those at once. Logs are in
.pytest_cache/mutations.
"""
