"""Lets tests of agents that lie anywhere in this folder use agents.testing: see docs/agents.md, Testing."""

pytest_plugins = ["config.local.trials"]
