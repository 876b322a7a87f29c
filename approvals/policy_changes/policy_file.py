"""Reads and writes policies as TOML, one table for each: the whole truth about it, so that what is left out is default.

[[policy]]
team = "Support"
name = "refunds"
groups = ["Support", "Finance"]
quorum = 2
deadline = "4 h"

[[policy.rule]]
name = "small"
when = 'amount < 50'
approvals = 1
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import tomli_w
from django.db import models

from approvals.models import Calendar, Policy
from approvals.models.policy import SETTINGS
from approvals.policy import required
from approvals.policy.rules import written
from approvals.policy.rules.written import Directory
from checkpoints.admin.durations import spell_duration

OFF = frozenset({"tokens_decide"})  # settings that a new policy has off, although older ones have them on
WRITTEN_APART = frozenset({"stages", "rules", "escalation", "calendar_id", "denials"})  # otherwise, or not at all
PLAIN = tuple(name for name in SETTINGS if name not in WRITTEN_APART)
KEYS = ("team", "name", "groups", "people", "stages", "rule", "escalation", "calendar", *PLAIN)
MOST = 500  # policies


class WrongFile(Exception):
    """Raised for a file that is no list of policies; the message says where and why."""


def tables(text: str) -> list[dict[str, Any]]:
    """Read the tables of a file. Raises WrongFile for what is no policy, or for two of one team and name."""
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise WrongFile(f"This cannot be read as TOML: {fault}") from None
    found = said.get("policy", [])
    other = sorted(said.keys() - {"policy"})
    if other or not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise WrongFile(f"Begin each policy with [[policy]]. “{other[0] if other else 'policy'}” is no policy.")
    if len(found) > MOST:
        raise WrongFile(f"Write at most {MOST} policies in a file.")
    for number, each in enumerate(found, 1):
        _check(number, each)
    names = [(each["team"], each["name"]) for each in found]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice:
        raise WrongFile(f"The policy “{twice[1]}” of {twice[0]} is there twice.")
    return found


def _check(number: int, said: Mapping[str, Any]) -> None:
    for key in ("team", "name"):
        if not isinstance(said.get(key), str):
            raise WrongFile(f"Policy {number}: write its {key}.")
    unknown = sorted(said.keys() - set(KEYS))
    if unknown:
        raise WrongFile(f"Policy “{said['name']}”: there is no “{unknown[0]}”. There are: {', '.join(KEYS)}.")


def form_data(said: Mapping[str, Any], directory: Directory) -> dict[str, Any]:
    """Return a table as the form of the administration takes it. Raises WrongFile for names that do not exist."""
    where = f"Policy “{said['name']}”"
    team = _known(said["team"], directory.teams, f"{where}, team")
    data: dict[str, Any] = {
        "team": team,
        "name": said["name"],
        "groups": [_known(each, directory.teams, f"{where}, groups") for each in _list(said, "groups", where)],
        "people": [_known(each, directory.people, f"{where}, people") for each in _list(said, "people", where)],
        "stages": "\n".join(_list(said, "stages", where)),
        "rules": tomli_w.dumps({"rule": said["rule"]}) if said.get("rule") else "",
        "escalation": "\n".join(_list(said, "escalation", where)),
    }
    if said.get("calendar"):
        calendars = Calendar.objects.filter(team=team).values_list("name", "pk")
        data["calendar"] = _known(said["calendar"], dict(calendars), f"{where}, calendar")
    for name in PLAIN:
        data[name] = _value(name, said, where)
    return {name: value for name, value in data.items() if value is not None}


def _value(name: str, said: Mapping[str, Any], where: str) -> Any:
    """Return a setting as a form posts it: "" for none, None for an unticked box.

    What a form does not post has its default, or stays as it was.
    """
    value, column = said.get(name, _default(name)), Policy._meta.get_field(name)
    if isinstance(column, models.BooleanField):
        if not isinstance(value, bool):
            raise WrongFile(f"{where}, {name}: write true or false.")
        return "on" if value else None
    if value is None or (value == "none" and column.null):  # else a choice of that name
        return ""
    return spell_duration(value) if isinstance(value, timedelta) else str(value)


def _list(said: Mapping[str, Any], name: str, where: str) -> list[str]:
    value = said.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise WrongFile(f"{where}, {name}: write a list of texts.")
    return value


def _known(name: str, there: Mapping[str, int], where: str) -> int:
    if name not in there:
        raise WrongFile(f"{where}: there is no “{name}”. There are: {', '.join(sorted(there)[:20])}.")
    return there[name]


def text_of(policies: list[Policy], directory: Directory) -> str:
    """Write policies as a file, with the settings that are not default."""
    return tomli_w.dumps({"policy": [_table(each, directory) for each in policies]}, multiline_strings=True)


def _table(policy: Policy, directory: Directory) -> dict[str, Any]:
    own = required.own(policy)
    groups, people = directory.names.teams, directory.names.people
    role = own.stages[0].roles[0]
    made: dict[str, Any] = {"team": policy.team.name, "name": policy.name}
    if own.staged:
        made["stages"] = written.stages_text(own.stages, directory).splitlines()
    else:
        made |= {"groups": sorted(groups[each] for each in role.teams), "quorum": role.quorum}
        made |= {"people": sorted(people[each] for each in role.people)} if role.people else {}
    if policy.escalation:
        made["escalation"] = required.lines(policy.escalation)
    if policy.calendar:
        made["calendar"] = policy.calendar.name
    for name in PLAIN:
        value = getattr(policy, name)
        if name not in (*made, "quorum") and value != _default(name):
            made[name] = "none" if value is None else spell_duration(value) if isinstance(value, timedelta) else value
    rules = required.rules_of(policy.rules)
    return made | (tomllib.loads(written.rules_text(rules, directory)) if rules else {})


def _default(name: str) -> Any:
    return False if name in OFF else getattr(Policy(), name)
