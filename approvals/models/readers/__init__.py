"""Rows that the readers of a gate leave there: questions to its agent, and when they last looked."""

from .question import AgentQuestion
from .visit import GateVisit

__all__ = ["AgentQuestion", "GateVisit"]
