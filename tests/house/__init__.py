"""Check the project's own files: what no linter knows of.

Each module is a check of its own, `python -m tests.house.<name> [path…]`: it prints what to do as `file:line: …`,
and exits with 1 where there is anything to do. `make check` runs them all.
"""
