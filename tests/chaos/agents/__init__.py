"""Defines the harness's own agents, which run beside the refunds agent."""
