"""Lists the example agents, which are served if HOLDPOINT_AGENTS names no others.

Libraries that only they need are in requirements-examples.txt. An example without its library is left out.
"""

from importlib.util import find_spec

LIBRARIES = {
    "refunds": None,
    "jobshop": "ortools",
    "restock": None,
    "rollout": None,
    "research": None,
    "assistant": "openai",
}
AGENTS = tuple(
    f"agents.examples.{name}" for name, library in LIBRARIES.items() if library is None or find_spec(library)
)
