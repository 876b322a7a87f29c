"""Pydantic AI: people approve the tool calls that need approval, at one gate for each `DeferredToolRequests`."""

from .running import Asking, defer, resume, run, run_sync

__all__ = ["Asking", "defer", "resume", "run", "run_sync"]
