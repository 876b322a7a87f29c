"""Metrics for Prometheus, at `/metrics` of each web process.

There are three kinds. This process counts its requests (`requests`), the events that its tailer reads
(checkpoints.events.tailer) and its pool of connections (`pools`). PostgreSQL and Redis are queried at each scrape
in bounded time (`database`, `broker`); these figures are the same in every process. The library reports on
the process itself. Workers, sweeper and beat listen on no port: their work shows in the database, in Redis and in the
events. docs/watch.md lists all metrics, and docs/monitoring has rules and a dashboard.
"""
