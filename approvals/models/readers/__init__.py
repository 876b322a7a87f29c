"""Rows that the readers of a gate leave there: questions to its agent, and when they last looked."""

from .visit import AgentQuestion, GateVisit

__all__ = ["AgentQuestion", "GateVisit"]
