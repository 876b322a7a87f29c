"""The state as a form: one text of JSON for each field, and what was typed as a patch. Pure.

Characters that cannot be seen are written as JSON escapes, so that nobody edits round what they cannot see.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.errors import FieldError
from approvals import veils
from approvals.forms.texts import as_json
from approvals.veils import Veil
from checkpoints import patch as patches
from checkpoints.errors import ValueRefused
from checkpoints.patch import Op
from checkpoints.plans import PlanSpec
from checkpoints.values import parse, pointer

LARGEST = 20_000  # characters of one field's JSON that are edited on a page
SHORT = 16  # lines of one that is shown unfolded
BRIEF = 40  # characters of one that stands in its line
MISSING = object()


@dataclass(frozen=True, slots=True)
class Editor:
    """One field. `text` is None where its value is too large to be edited here; empty where it has no value.

    `readers` are the steps ahead that read it.
    """

    name: str
    text: str | None
    saved: str = ""
    changed: bool = False
    readers: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def unfolded(self) -> bool:
        """Whether it is drawn open: a step ahead reads it and it is short, or there is something to correct."""
        short = self.text is not None and self.text.count("\n") < SHORT
        return self.changed or bool(self.faults) or (short and bool(self.readers) and len(self.saved) > BRIEF)

    @property
    def brief(self) -> str:
        """The value, where it is short enough to stand beside the name while the text is folded away."""
        return self.saved if len(self.saved) <= BRIEF and "\n" not in self.saved else ""


@dataclass(frozen=True, slots=True)
class Typed:
    """What somebody typed: the state that they want, as a patch of the one that there is, and what is no JSON."""

    state: dict[str, Any]
    patch: list[Op]
    faults: list[FieldError] = field(default_factory=list)

    @property
    def changed(self) -> set[str]:
        """The fields that differ."""
        return {patches.tokens(op["path"])[0] for op in self.patch}


def editors(
    plan: PlanSpec,
    state: Mapping[str, Any],
    then: str,
    texts: Mapping[str, str] | None = None,
    faults: Sequence[FieldError] = (),
) -> list[Editor]:
    """A text for each field of the agent's state: what was typed, or else what is saved, placeholders for secrets.

    Those that the steps from `then` on read come first, in the order in which they do.
    """
    said, state = texts or {}, veils.veil(plan.state_schema).masked(dict(state), named=True)
    ahead = plan.reachable(then) if then in {step.name for step in plan.steps} else set()
    steps = [step for step in plan.steps if step.name in ahead]
    read = dict.fromkeys(name for step in steps for name in step.reads)
    names = dict.fromkeys([*read, *plan.state_schema.get("properties", {}), *state])
    readers = {name: tuple(step.name for step in steps if name in step.reads) for name in names}
    return [_editor(name, state, readers[name], said.get(name), faults) for name in names]


def _editor(
    name: str, state: Mapping[str, Any], readers: tuple[str, ...], text: str | None, faults: Sequence[FieldError]
) -> Editor:
    saved = as_json(state[name]) if name in state else ""
    large = text is None and len(saved) > LARGEST
    shown = None if large else saved if text is None else text
    changed = text is not None and text.strip() != saved
    return Editor(name, shown, saved, changed, readers, tuple(of_field(faults, name)))


def of_field(faults: Iterable[FieldError], name: str) -> Iterable[str]:
    """The sentences about one field, each with the place inside the field where it is not all of it."""
    for fault in faults:
        first, *rest = patches.tokens(fault["pointer"]) or [""]
        if first == name:
            yield f"{', '.join(rest)}: {fault['message']}" if rest else fault["message"]


def elsewhere(faults: Iterable[FieldError], names: Iterable[str]) -> list[str]:
    """The sentences about none of these fields."""
    known = set(names)
    return [fault["message"] for fault in faults if (patches.tokens(fault["pointer"]) or [""])[0] not in known]


def read(state: Mapping[str, Any], texts: Mapping[str, str], veil: Veil) -> Typed:
    """What was typed into the editors. An empty text takes the field out of the state.

    A placeholder is the secret that it stands for.
    """
    wanted, faults = dict(state), list[FieldError]()
    for name, text in texts.items():
        try:
            value = veil.kept({name: parse(text)}, state)[name] if text.strip() else MISSING
        except ValueRefused as error:
            inside = error.pointer.removeprefix(pointer(name))
            faults.append({"pointer": pointer(name) + inside, "message": error.reason})
            continue
        if value is MISSING:
            wanted.pop(name, None)
        elif name not in state or not patches.same(value, state[name]):
            wanted[name] = value
    names = {name for name in wanted.keys() | state.keys() if wanted.get(name, MISSING) is not state.get(name, MISSING)}
    patch = patches.diff(
        {name: value for name, value in state.items() if name in names},
        {name: value for name, value in wanted.items() if name in names},
    )
    return Typed(wanted, patch, faults)
