"""The checks of a preflight: facts in, findings in green, amber and red out. Pure.

Red: the run cannot go on from here as things are, so nothing is decided over it. Amber: it can, or nobody here can
say that it cannot, and whoever decides should know what is different. Nothing that was not looked at is green.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from approvals.english import counted, plural

from .facts import AgentCode, EnvironmentFacts, Library, RemoteProgram, SavedCheckpoint, Takeover, UnknownCode

GREEN, AMBER, RED = "green", "amber", "red"
ORDER = (GREEN, AMBER, RED)  # from calm to grave
NAMED = 3  # of many, in one sentence


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, in sentences that say what to do where something is to be done."""

    check: str
    colour: str
    words: str


@dataclass(frozen=True, slots=True)
class Preflight:
    """Every check's finding, in the order in which they are made."""

    findings: tuple[Finding, ...]
    checked: bool = True  # False: nothing of the code was

    @property
    def colour(self) -> str:
        """Return the gravest colour of the findings."""
        return max((finding.colour for finding in self.findings), key=ORDER.index, default=AMBER)

    @property
    def red(self) -> bool:
        return self.colour == RED

    @property
    def title(self) -> str:
        """Return the line above the findings."""
        if self.red:
            return "This cannot resume as things are"
        if not self.checked:
            return "The agent's code was not checked here"
        if self.colour == AMBER:
            return f"This can resume, with {counted(len(self.reasons), 'thing')} to know"
        return f"This can resume: {counted(len(self.findings), 'check')}"

    @property
    def in_order(self) -> list[Finding]:
        """List the findings, the gravest first."""
        return sorted(self.findings, key=lambda finding: -ORDER.index(finding.colour))

    @property
    def reasons(self) -> list[Finding]:
        """List what is not green, the gravest first."""
        return [finding for finding in self.in_order if finding.colour != GREEN]

    def to_json(self) -> dict[str, Any]:
        """Return the preflight as the API gives it."""
        findings = [{"check": each.check, "colour": each.colour, "words": each.words} for each in self.findings]
        return {"colour": self.colour, "title": self.title, "findings": findings}


def judge(saved: SavedCheckpoint, code: AgentCode | UnknownCode) -> Preflight:
    """Make every check that can be made."""
    found = [checkpoint(saved)]
    if isinstance(code, UnknownCode):
        found.append(Finding("version", AMBER, code.why))
    else:
        found.append(version(code))
        if code.goes_on_in and not saved.fault:
            found.append(state(code))
            found += [] if code.program else environment(code, code.environment or EnvironmentFacts())
    if not saved.fault:
        found.append(artifacts(saved))
    return Preflight(tuple(found), checked=isinstance(code, AgentCode))


def checkpoint(saved: SavedCheckpoint) -> Finding:
    """Check that what is saved loads and matches its digest."""
    if saved.fault:
        words = (
            f"Checkpoint {saved.seq} does not verify: {saved.fault}. Nothing runs from it; restore it from a backup."
        )
        return Finding("checkpoint", RED, words)
    return Finding("checkpoint", GREEN, f"Checkpoint {saved.seq} loads and verifies.")


def version(code: AgentCode) -> Finding:
    """Check that the run's version and its steps are there, or which upcasters bring it to one that is."""
    if code.program:
        return _program(code, code.program)
    if code.deployed:
        return Finding(
            "version", GREEN, f"Version {code.version} of {code.agent} is deployed, with the run's own steps."
        )
    if code.changed:
        words = (
            f"The code of {code.agent} {code.version} changed since the run began, so nothing takes the run on. Put "
            "that code back, give the class another version (with an "
            f'@upcast("{code.version}") it takes the run over), or cancel the run.'
        )
        return Finding("version", RED, words)
    gone = f"Version {code.version} is not deployed"
    again = f"or deploy version {code.version} again"
    if code.takeover is None:
        lacks = f", and has no {named('step', code.lacks)}" if code.lacks else ""
        upcaster = f"Write an upcaster from {code.version} to {code.newest}"
        return Finding("version", RED, f"{gone}; version {code.newest} is{lacks}. {upcaster}, {again}.")
    return _taken(code.takeover, gone, again)


def _program(code: AgentCode, program: RemoteProgram) -> Finding:
    """Check that the outside program is there to act on what is decided."""
    lives = f"{code.agent} lives outside"
    named = f" ({program.name})" if program.name else ""
    if program.deferred:
        words = f"{lives}: its program{named} went away and comes back for the outcome."
        return Finding("program", GREEN, words)
    if program.missed:
        words = f"{lives}, and its program{named} was not heard of for {program.heard}."
        return Finding("program", AMBER, f"{words} What is decided is kept, and done when it comes back.")
    return Finding("program", GREEN, f"{lives}: its program{named} was heard of {program.heard} ago.")


def _taken(by: Takeover, gone: str, again: str) -> Finding:
    one = len(by.upcasters) == 1
    run = f"its upcaster{'' if one else 's'} {listed(by.upcasters)}"
    if by.lacks:
        lacks = f"version {by.version} has no {named('step', by.lacks)}"
        words = f"{gone}; {lacks}, and {run} name{'s' if one else ''} no other. Name its successor there, {again}."
        return Finding("version", RED, words)
    if by.fault:
        return Finding(
            "version", RED, f"{gone}, and version {by.version} cannot take the run: {by.fault} Correct it, {again}."
        )
    renamed = "".join(f" {old} is now {new}." for old, new in by.renamed)
    words = f"{gone}. Version {by.version} takes the run: {run} run{'s' if one else ''} first."
    return Finding("version", AMBER, f"{words}{renamed} An approval does not go over: what it allowed is asked again.")


def state(code: AgentCode) -> Finding:
    """Check that the state fits the schema of the version that would go on."""
    what = "The state" if code.deployed else "What the upcasters make of the state"
    if code.faults:
        words = f"{what} does not fit version {code.goes_on_in}: {listed(code.faults, '; ')}."
        return Finding("state", RED, f"{words} Rewind the run, or edit its state.")
    if code.doubts:
        words = (
            f"Every field of the state fits version {code.goes_on_in}, the whole does not: {listed(code.doubts, '; ')}"
        )
        return Finding("state", AMBER, f"{words}. Steps run, an edit is refused.")
    return Finding("state", GREEN, f"{what} fits the schema of version {code.goes_on_in}.")


def environment(code: AgentCode, now: EnvironmentFacts) -> Sequence[Finding]:
    """Check that configuration and libraries are those that were recorded."""
    return _configuration(code, now), _libraries(now)


def _configuration(code: AgentCode, now: EnvironmentFacts) -> Finding:
    if now.fault:
        words = f"The recorded configuration does not fit version {code.goes_on_in}: {now.fault}. Correct its Config."
        return Finding("configuration", RED, words)
    if not now.configured:
        return Finding("configuration", GREEN, "The agent has no configuration.")
    if not now.recorded:
        words = "No configuration was recorded when the run started; it goes on with the defaults of today."
        return Finding("configuration", AMBER, words)
    if now.changed:
        names = listed(now.changed)
        words = f"The configuration would not be what was recorded when the run started: {names} differs."
        return Finding("configuration", AMBER, words)
    return Finding("configuration", GREEN, "The configuration is the recorded one.")


def _libraries(now: EnvironmentFacts) -> Finding:
    if not now.libraries:
        return Finding("libraries", GREEN, "The agent declares no libraries.")
    gone = [f"{each.name} {each.recorded}" for each in now.libraries if each.recorded and each.now is None]
    if gone:
        return Finding("libraries", RED, f"Not installed here: {listed(gone)}. Install it again.")
    other = [_other(each) for each in now.libraries if each.recorded != each.now or each.now is None]
    if other:
        return Finding("libraries", AMBER, f"{listed(other, '; ')}.")
    return Finding("libraries", GREEN, f"{listed([f'{each.name} {each.now}' for each in now.libraries])}, as recorded.")


def _other(library: Library) -> str:
    now = f"is {library.now} here" if library.now else "is not installed here"
    if library.recorded == "":
        return f"{library.name} {now}, and was not recorded when the run started"
    return f"{library.name} was {library.recorded or 'not installed'} when the run started and {now}"


def artifacts(saved: SavedCheckpoint) -> Finding:
    """Check that what the state refers to outside the database is there."""
    if not saved.artifacts:
        return Finding("artifacts", GREEN, "The state names no artifacts.")
    if saved.unseen:
        return Finding(
            "artifacts", AMBER, f"The file storage could not be asked for what the state names: {saved.unseen}."
        )
    if saved.missing:
        where = listed(saved.missing)
        words = f"{counted(len(saved.missing), 'artifact')} of the state cannot be found, or not whole: {where}."
        return Finding("artifacts", RED, f"{words} Restore the file storage from a backup.")
    return Finding("artifacts", GREEN, f"{counted(saved.artifacts, 'artifact')} that the state names can be found.")


def listed(things: Sequence[str], by: str = ", ") -> str:
    """List the first of them, and how many more."""
    more = len(things) - NAMED
    return by.join(things[:NAMED]) + (f" and {more} more" if more > 0 else "")


def named(noun: str, things: Sequence[str]) -> str:
    """Return "step a", "steps a, b"."""
    return f"{plural(len(things), noun)} {listed(things)}"
