"""What a model of a state says of a value that it does not take."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError, field_validator

from agents.definition import fields


class Refund(BaseModel):
    """A check in words of its author's."""

    amount: int

    @field_validator("amount")
    @classmethod
    def left(cls, amount: int) -> int:
        if amount > 19:
            raise ValueError("only 19 is left of the payment")
        if not amount:
            raise AssertionError("nothing is to be paid")
        return amount


@pytest.mark.parametrize(("amount", "said"), [(40, "only 19 is left of the payment"), (0, "nothing is to be paid")])
def test_what_a_check_says_is_told_as_it_says_it(amount: int, said: str) -> None:
    """Reviewers read "Value error, only 19 is left"."""
    with pytest.raises(ValidationError) as refused:
        fields.normalised(Refund, {"amount": amount})
    assert [(each["pointer"], each["message"]) for each in fields.errors_of(refused.value)] == [("/amount", said)]
