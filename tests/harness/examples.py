"""How many examples a test tries, made up or listed: few each time, all of them in `make test-long`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import hypothesis
import pytest

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
    return _all


def many(number: int) -> int:
    """Return `number` where all examples are tried, else a part of it."""
    return number if _all else max(1, number // FEW)


def one_in(number: int, cases: Iterable[Any]) -> list[Any]:
    """Return the cases of a test, of which all but one in `number` are tried by `make test-long` alone.

    For places where a process is killed: the crash sweep tries each of them every time.
    """
    return [_marked(case, long=at % number > 0) for at, case in enumerate(cases)]


def first_alone(cases: Iterable[Any], number: int = 1) -> list[Any]:
    """Return the cases of a test, of which all but the first `number` are tried by `make test-long` alone."""
    return [_marked(case, long=at >= number) for at, case in enumerate(cases)]


def _marked(case: Any, *, long: bool) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.long] if long else [])
