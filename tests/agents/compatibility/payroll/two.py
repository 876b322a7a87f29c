"""Version 2 gives each child a memo."""

from __future__ import annotations

from typing import Any, ClassVar

from agents import Agent, step, upcast

from . import Salary, one

__all__ = ["Payroll", "Salary"]


class Payroll(Agent):
    """Has every salary paid by a child, with a memo."""

    name = "payroll_of_six"
    team = "Support"
    version = "2"
    State: ClassVar[Any] = one.Payroll.State

    @upcast("1")
    @classmethod
    def from_1(cls, state: dict[str, Any]) -> dict[str, Any]:
        return state

    @step
    def read(self, ibans: list[str]) -> dict[str, Any]:
        return {"ibans": sorted(ibans)}

    @step
    def pay_all(self, ledger: str, ibans: list[str]) -> dict[str, Any]:
        children = [
            self.spawn("salary", {"ledger": ledger, "iban": iban, "memo": "November"}, name=iban) for iban in ibans
        ]
        return {"paid": [each.state["iban"] for each in self.gather(*children) if each]}
