"""Figures for Prometheus, at `/metrics` of each web process.

There are three sorts. What this process counts itself: requests (`requests`), the events that its tailer reads
(checkpoints.events.tailer), its pool of connections (`pools`). What PostgreSQL and Redis hold, asked for at each scrape
in bounded time (`database`, `broker`); it is the same whichever process is asked. And what the library reports of
the process. Workers, sweeper and beat listen on no port: what they do is seen in the database, in Redis and in the
events. docs/operations.md lists all of them, and docs/monitoring has rules and a board.
"""
