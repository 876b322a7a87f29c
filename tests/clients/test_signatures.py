"""The types of a function that asks first: of its arguments they must be known, and of its result they may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from holdpoint import Holdpoint
from holdpoint.decorating import Signature

if TYPE_CHECKING:
    from decimal import Decimal


class Handle:
    """A class that pydantic asks for its schema, and that has none."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise RuntimeError("no schema")


def for_checkers(cents: int) -> Decimal:
    return cents  # type: ignore[return-value]


def hooked(cents: int) -> Handle:
    return Handle()


def unknown_argument(amount: Decimal) -> None:
    """Pay."""


@pytest.mark.parametrize(("function", "name"), [(for_checkers, "Decimal"), (hooked, "Handle")])
def test_a_result_whose_type_is_unknown_here_stops_no_function_from_asking(function: Any, name: str) -> None:
    """The decorator raised at import where the result's class is for type checkers, or its hook for schemas raises."""
    signature = Signature(function)
    result = Handle()
    assert list(signature.schema()["properties"]) == ["cents"]
    assert signature.result(result) is result
    with pytest.raises(TypeError, match=f"returns {name}, which people cannot answer instead"):
        signature.response()
    with Holdpoint("http://127.0.0.1:9", token="hp_x") as hp:
        assert hp.requires_approval(function).__annotations__["cents"] is int


def test_an_argument_whose_type_is_unknown_is_refused_when_the_function_is_decorated() -> None:
    with pytest.raises(NameError, match="Decimal"):
        Signature(unknown_argument)
