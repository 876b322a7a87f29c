"""The agents that come with Holdpoint: those that are served where HOLDPOINT_AGENTS names no others.

The libraries that nothing else needs are in requirements-examples.txt. An example without its library is left out.
"""

from importlib.util import find_spec

LIBRARIES = {"refunds": "bs4", "jobshop": "ortools", "restock": None, "assistant": "openai"}
AGENTS = tuple(
    f"agents.examples.{name}" for name, library in LIBRARIES.items() if library is None or find_spec(library)
)
