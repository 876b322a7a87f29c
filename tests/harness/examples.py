"""How many examples a test tries that makes them up: few each time, all of them in `make test-long`."""

from __future__ import annotations

import hypothesis

FEW = 8  # times fewer
DEFAULT = 100  # of Hypothesis
# A deadline measures the machine, not the code.
hypothesis.settings.register_profile("few", deadline=None, max_examples=DEFAULT // FEW)
hypothesis.settings.register_profile("all", deadline=None, max_examples=DEFAULT)
hypothesis.settings.load_profile("few")
_all = False


def try_all() -> None:
    """Have every test try all of its examples; called before any test module is read."""
    global _all
    _all = True
    hypothesis.settings.load_profile("all")


def trying_all() -> bool:
    """Tell whether every test tries all of its examples."""
    return _all


def many(number: int) -> int:
    """Return `number` where all examples are tried, else a part of it."""
    return number if _all else max(1, number // FEW)
