"""Approvals until something that they let run has begun."""

from .unrun import Unrun

__all__ = ["Unrun"]
