"""The whole product on one machine, from one command: `python -m config.local run`.

An embedded PostgreSQL and Redis keep their data under HOLDPOINT_HOME, or DATABASE_URL and REDIS_URL name
servers that run already. One supervisor starts them, then the application's processes, prefixes each line
that they log, and stops all of them in order. It holds a lock on HOLDPOINT_HOME as long as it lives, so
that two never share one folder. Every child is tied to the supervisor's life: even after a `kill -9` of
the supervisor nothing stays behind.

`home` is the folder, `process` a child, `servers` the PostgreSQL and Redis, `stack` the order of starts and stops,
`seed` the first accounts. The tests' servers use the same parts.
"""


class StackRefused(Exception):
    """The stack cannot start; the message is one clear sentence, and nothing was left half-started."""
