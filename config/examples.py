"""The agents that come with Holdpoint: those that are served where HOLDPOINT_AGENTS names no others."""

AGENTS = tuple(f"agents.examples.{name}" for name in ("refunds", "jobshop", "restock", "assistant"))
