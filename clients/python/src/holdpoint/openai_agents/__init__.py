"""The OpenAI Agents SDK: people approve the calls of its tools that need approval, at one gate for each stop."""

from .running import Asking, defer, resume, run, run_sync

__all__ = ["Asking", "defer", "resume", "run", "run_sync"]
