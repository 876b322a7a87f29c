"""Stages and rules as their authors write them, and back: lines of plain words, and TOML.

A stage is a line: `2 of Finance`, `1 of Finance and 1 of Legal`, `1 of Legal or @mira`. Rules are TOML tables, in the
order in which they are tried; what a rule leaves out is as the policy has it:

    [[rule]]
    name = "large"
    when = 'amount >= 1000 && currency == "EUR"'
    stages = ["2 of Finance", "1 of Legal"]
    password = true
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User

from approvals.policy.requirements import ENDS, RISKS, Role, Rule, Stage, stages_json, stages_of
from checkpoints.admin.durations import parse_duration, spell_duration
from checkpoints.values.canonical_json import encode_canonical

from . import expressions
from .stage_words import NUMBERS, Names

MOST = 50  # rules, stages, or roles of a stage
MANY = 100  # people that one role takes
LONGEST_NAME = 60
SHORTEST = timedelta(minutes=1)
_ROLE = re.compile(r"\s*(\w+)\s+of\s+(.+?)\s*", re.IGNORECASE)
_WORDS = {word: number for number, word in enumerate(NUMBERS) if word}
_PLAIN = re.compile(r"[^\s\"@]+(?: [^\s\"@]+)*")


class WrongText(Exception):
    """An author's text cannot be read; the message says where and why."""


@dataclass(frozen=True)
class Directory:
    """The teams and people that can be named."""

    teams: Mapping[str, int]
    people: Mapping[str, int]  # by username
    gone: Mapping[str, int] = field(default_factory=dict)  # whose account is switched off: only written, where named

    @classmethod
    def now(cls) -> Directory:
        """Read all of them."""
        found = {True: dict[str, int](), False: dict[str, int]()}
        for name, pk, active in User.objects.values_list("username", "pk", "is_active"):
            found[active][name] = pk
        return cls(dict(Group.objects.values_list("name", "pk")), found[True], found[False])

    @property
    def names(self) -> Names:
        """Return the names by ids."""
        people = {**self.people, **self.gone}
        return Names({pk: name for name, pk in self.teams.items()}, {pk: name for name, pk in people.items()})

    def text_of(self, role: Role) -> str:
        """Write a role as a line has it."""
        names = self.names
        named = [_quoted(names.teams.get(each, str(each))) for each in role.teams]
        named += [f"@{names.people.get(each, each)}" for each in role.people]
        return f"{role.quorum} of {' or '.join(named)}"


def _quoted(name: str) -> str:
    """Quote the name of a team that would be read as two."""
    plain = _PLAIN.fullmatch(name) and not re.search(r"\b(or|and)\b", name, re.IGNORECASE)
    return name if plain else f'"{name}"'


def stages_from(text: str, directory: Directory) -> tuple[Stage, ...]:
    """Read stages, one a line. Raises WrongText."""
    lines = [(at, line.strip()) for at, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > MOST:
        raise WrongText(f"Write at most {MOST} stages.")
    made = []
    for at, line in lines:
        try:
            roles = [_role(each, directory) for each in _split(line, "and")]
            if len(roles) > MOST:
                raise WrongText(f"Write at most {MOST} roles.")
            made.append(Stage(roles=tuple(roles)))
        except WrongText as wrong:
            raise WrongText(f"Line {at}: {wrong}") from None
    return tuple(made)


def stages_text(stages: Iterable[Stage], directory: Directory) -> str:
    """Write stages, one a line."""
    return "\n".join(" and ".join(map(directory.text_of, stage.roles)) for stage in stages)


def _role(words: str, directory: Directory) -> Role:
    found = _ROLE.fullmatch(words)
    if not found:
        raise WrongText(f"“{words.strip()}” is no role. Write for example 2 of Finance.")
    count = _WORDS.get(found[1].lower()) or (int(found[1]) if re.fullmatch(r"[0-9]{1,4}", found[1]) else 0)
    if not 0 < count <= MANY:
        raise WrongText(f"Write a number from 1 to {MANY} instead of “{found[1]}”.")
    named = [each.strip() for each in _split(found[2], "or")]
    people = sorted({_known(each[1:], directory.people, "person") for each in named if each.startswith("@")})
    groups = sorted({_known(each.strip('"'), directory.teams, "team") for each in named if not each.startswith("@")})
    return Role(quorum=count, teams=tuple(groups), people=tuple(people))


def _split(words: str, by: str) -> list[str]:
    """Split at a word that stands outside of quotes."""
    parts = re.split(rf'("[^"]*")|\s+{by}\s+', words, flags=re.IGNORECASE)
    made = [""]
    for at, part in enumerate(parts):
        if part is None:
            made.append("")
        elif at % 2 or part:
            made[-1] += part
    return made


def _known(name: str, there: Mapping[str, int], kind: str) -> int:
    found = there.get(name)
    if found is None:
        found = next((pk for known, pk in there.items() if known.casefold() == name.casefold()), None)
    if found is None:
        close = ", ".join(sorted(there)[:8])
        raise WrongText(f"There is no {kind} “{name}”. There are: {close or 'none'}.")
    return found


def rules_from(text: str, directory: Directory) -> tuple[Rule, ...]:
    """Read rules, in their order. Raises WrongText."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise WrongText(f"This cannot be read as TOML: {fault}") from None
    unknown = sorted(said.keys() - {"rule"})
    rules = said.get("rule", [])
    if unknown or not isinstance(rules, list) or not all(isinstance(each, dict) for each in rules):
        raise WrongText(f"Begin each rule with [[rule]]. “{unknown[0] if unknown else 'rule'}” is no rule.")
    if len(rules) > MOST:
        raise WrongText(f"Write at most {MOST} rules.")
    made: list[Rule] = []
    for at, each in enumerate(rules, 1):
        made.append(_rule(at, each, directory, {rule.name for rule in made}))
    return tuple(made)


def _rule(at: int, said: dict[str, Any], directory: Directory, taken: set[str]) -> Rule:
    name = said.pop("name", None)
    if not isinstance(name, str) or not 0 < len(name.strip()) <= LONGEST_NAME:
        raise WrongText(f"Rule {at}: give it a name of 1 to {LONGEST_NAME} characters.")
    where = f"Rule “{name}”"
    if name in taken:
        raise WrongText(f"{where}: there is one of this name already.")
    when = said.pop("when", None)
    if not isinstance(when, str):
        raise WrongText(f"{where}: write when it counts: when = 'amount < 50'.")
    try:
        expressions.checked(when)
    except expressions.WrongExpression as wrong:
        place = f", line {wrong.line}, column {wrong.column}" if wrong.line else ""
        raise WrongText(f"{where}, when{place}: {wrong}") from None
    require: dict[str, Any] = {}
    for key, value in said.items():
        if key not in _KEYS:
            raise WrongText(f"{where}: there is no “{key}”. There are: {', '.join(_KEYS)}.")
        stored, read = _KEYS[key]
        try:
            require[stored] = read(value, directory)
        except WrongText as wrong:
            raise WrongText(f"{where}, {key}: {wrong}") from None
    if "stages" in require and "quorum" in require:
        raise WrongText(f"{where}: write approvals or stages; stages say how many.")
    return Rule(name=name, when=when, require=require)


def _count(value: Any, directory: Directory) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MANY:
        raise WrongText(f"Write a number from 1 to {MANY}.")
    return value


def _switch(value: Any, directory: Directory) -> bool:
    if not isinstance(value, bool):
        raise WrongText("Write true or false.")
    return value


def _lines(value: Any, directory: Directory) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value or not all(isinstance(each, str) for each in value):
        raise WrongText('Write a list of stages: ["2 of Finance", "1 of Legal"].')
    return stages_json(stages_from("\n".join(value), directory))


def _span(value: Any, directory: Directory) -> int:
    span = parse_duration(value) if isinstance(value, str) else None
    if span is None or span < SHORTEST:
        raise WrongText('Write a duration of a minute or more, for example "4 h".')
    return int(span.total_seconds())


def _one_of(choices: Sequence[str]) -> Callable[[Any, Directory], str]:
    def read(value: Any, directory: Directory) -> str:
        if value not in choices:
            raise WrongText(f"Write one of {', '.join(choices)}.")
        return str(value)

    return read


# How each key is called in Requirements, and read.
_KEYS: dict[str, tuple[str, Callable[[Any, Directory], Any]]] = {
    "approvals": ("quorum", _count),
    "stages": ("stages", _lines),
    "password": ("step_up", _switch),
    "second_look": ("second_look", _switch),
    "approve_automatically": ("auto", _switch),
    "risk": ("risk", _one_of(RISKS)),
    "deadline": ("deadline", _span),
    "after_deadline": ("on_expiry", _one_of(ENDS)),
}


def rules_text(rules: Iterable[Rule], directory: Directory) -> str:
    """Write rules as TOML."""
    return "\n".join(_table(rule, directory) for rule in rules)


def _table(rule: Rule, directory: Directory) -> str:
    lines = ["[[rule]]", f"name = {_string(rule.name)}", f"when = {_string(rule.when)}"]
    for key, (stored, _read) in _KEYS.items():
        if stored not in rule.require:
            continue
        value = rule.require[stored]
        if stored == "stages":
            from_json = stages_text(stages_of(value), directory).splitlines()
            lines.append(f"{key} = [{', '.join(map(_string, from_json))}]")
        elif stored == "deadline":
            lines.append(f"{key} = {_string(spell_duration(timedelta(seconds=value)))}")
        elif isinstance(value, bool | int):
            lines.append(f"{key} = {str(value).lower()}")
        else:
            lines.append(f"{key} = {_string(value)}")
    return "\n".join([*lines, ""])


def _string(text: str) -> str:
    """Write a TOML string; in single quotes where it can be, so that an expression reads as it is."""
    plain = "'" not in text and text.isprintable()
    return f"'{text}'" if plain and '"' in text else encode_canonical(text).decode()


def stored_stages(stages: Sequence[Stage]) -> str:
    """Return the text of a policy's column; "" for none."""
    return encode_canonical(stages_json(stages)).decode() if stages else ""


def stored_rules(rules: Sequence[Rule]) -> str:
    """Return the text of a policy's column; "" for none."""
    said = [{"name": rule.name, "when": rule.when, "require": dict(rule.require)} for rule in rules]
    return encode_canonical(said).decode() if said else ""
