"""A whole installation under fire: `make chaos MINUTES=10 SEED=7`, in the manner of Jepsen.

`installation`: real parts with fsync on: PostgreSQL, Redis, web, two workers, sweeper, beat, the payment sandbox;
`agents` run on it, beside the refunds agent. `people` and a program use it: they start runs, decide gates, rewind,
fork, and ask from outside. Each request and its answer is a line of the `history`. Meanwhile the nemesis of `faults`
kills, stops and restarts processes and servers, and cuts connections, on a schedule that the seed alone gives.

Then everything is healed, and all runs have to come to rest. The checker of `checks` is pure: it reads the history, the
sandbox's ledger (the witness outside), and a dump of the database, and names every acknowledged decision that is lost
or counts twice, every effect that happened twice or without an approval, and every run that is stuck.
"""
