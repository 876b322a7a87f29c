"""Lets tests of agents that lie anywhere in this folder use agents.testing: see docs/testing.md."""

pytest_plugins = ["config.local.trials"]
