"""Pydantic AI: people approve the tool calls that need approval, at one gate for each `DeferredToolRequests`."""

from .running import Asking, defer, resume, run

__all__ = ["Asking", "defer", "resume", "run"]
