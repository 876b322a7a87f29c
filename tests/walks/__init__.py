"""What a request walks through: `python -m tests.walks [--modules]`, on servers of its own, in about a minute.

Prints for each request the modules and functions of the project that it passes, the statements that it sends, how many
of them write, and this process's own processor time. Then the size of the rooms in which a gate lives. The figures are
for comparing two trees on one machine; all but the time are the same at every walk.
"""
