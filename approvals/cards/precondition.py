"""Preconditions: facts about the world that must still hold when an approved effect is performed. Pure.

An approval binds what is asked; it cannot bind the world, which moves on while people think and workers wait. So
an agent's card offers preconditions: each names an *observation*, which the runtime makes when the gate opens and
makes again right before an effect that the precondition guards. The observed value is shown, and so part of *seen*. A
precondition that the agent requires cannot be dropped. One that it preselects holds unless everybody who approves drops
it by name; any other holds once one of those who approve adds it.
Values are equal where their canonical bytes are: 0, 0.0 and "0" are three values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from checkpoints.values import json_pointer, patch

VALUE = "{value}"  # in a label: where the observed value stands
LABEL_LIMIT = 200  # characters


@dataclass(frozen=True, kw_only=True)
class Precondition:
    """One fact that must still hold. `label` goes on after "only if": "the balance is still {value}"."""

    id: str
    label: str  # the agent's words, plain text
    observes: str  # the name of the observation
    effects: Sequence[str] = ()  # the effect steps that it guards; empty: all that the gate allows
    required: bool = False  # the agent insists; otherwise a reviewer may add it
    preselected: bool = False  # offered with its box ticked: holds unless it is dropped by name
    value: Any = None  # what was observed when the gate was opened; the runtime fills it in

    def __post_init__(self) -> None:
        object.__setattr__(self, "effects", tuple(self.effects))

    def guards(self, effect: str) -> bool:
        """Tell whether it is checked before that effect is performed."""
        return not self.effects or effect in self.effects

    def around(self) -> tuple[str, str]:
        """Return the label's words before the observed value, and those after it."""
        before, _, after = self.label.partition(VALUE)
        return before.strip(), after.strip()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with every field."""
        return {**asdict(self), "effects": list(self.effects), "value": self.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Precondition:
        """Read the precondition that `to_json` wrote."""
        return cls(**{f.name: data[f.name] for f in fields(cls) if f.name in data})


def faults_of(offered: Sequence[Precondition], *, observable: Iterable[str], allows: Sequence[str]) -> list[str]:
    """List what is wrong with a card's preconditions but for their ids, a sentence each."""
    known, faults = set(observable), []
    for each in offered:
        if not each.label.strip() or len(each.label) > LABEL_LIMIT:
            faults.append(f"the precondition {each.id!r} needs a label of 1 to {LABEL_LIMIT} characters")
        if each.observes not in known:
            faults.append(f"the precondition {each.id!r} observes {each.observes!r}, which the gate does not name")
        if beyond := sorted(set(each.effects) - set(allows)):
            faults.append(f"the precondition {each.id!r} guards {beyond[0]!r}, which the gate does not allow")
        if not allows:
            faults.append(f"the precondition {each.id!r} guards nothing, since the gate allows no effect")
    return faults


def agreed_to(offered: Sequence[Precondition], *, added: Iterable[str], dropped: Iterable[str]) -> list[str]:
    """List the ids that one person's decision adds to the required ones, in the card's order.

    A decision that does not name a preselected one leaves it as the agent offered it.
    """
    named, without = set(added), set(dropped)
    return [each.id for each in offered if each.id in named or (each.preselected and each.id not in without)]


def counted(offered: Sequence[Precondition], added: Iterable[str]) -> list[str]:
    """List the ids of the preconditions that hold, in the card's order: the required ones and those that were added."""
    chosen = set(added)
    return [each.id for each in offered if each.required or each.id in chosen]


def drifts(fixed: Iterable[Precondition], now: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List as rows the observed values that changed. `now`: observation -> value; those that it lacks are not compared.

    A row's `pointer` begins with the observation's name. No rows: every value is, to the byte, the approved one.
    """
    before = {each.observes: each.value for each in fixed if each.observes in now}
    return [
        {**row, "of": "world", "pointer": json_pointer.join("", name) + row["pointer"]}
        for name, value in before.items()
        for row in patch.list_changes(value, now[name])
    ]
