"""Checks whether a run can go on from a saved state: shown before a decision, and checked again with it. Pure.

Facts in, which `approvals.gates.preflight_facts` gathers, and findings in green, amber and red out. Red: the run cannot
go on from here as things are, so no decision is taken. Amber: it can, or this process cannot tell, and the reviewer
should know what is different. Green is only what was checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from approvals.english import count_of, noun_for, quote_titles

GREEN, AMBER, RED = "green", "amber", "red"
ORDER = (GREEN, AMBER, RED)  # from calm to grave
NAMED = 3  # of many things, in one sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCheckpoint:
    """The checkpoint: its number, why it does not verify, and the artifacts that its state names."""

    seq: int
    fault: str = ""
    artifacts: int = 0  # how many
    missing: tuple[str, ...] = ()  # places in the state (JSON Pointers) that name a missing one
    unseen: str = ""  # why the storage could not be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """The takeover of a run by a newer version."""

    version: str
    upcasters: tuple[str, ...]  # in the order in which they run
    renamed: tuple[tuple[str, str], ...] = ()  # (old, new) names of steps
    lacks: tuple[str, ...] = ()  # steps that the run may come to and the newer version lacks, not renamed ones
    fault: str = ""  # why the version cannot take the run


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A library that the agent declares: its version when the run started and now.

    None: it is not installed; "" when the run started: nothing was recorded of it.
    """

    name: str
    recorded: str | None
    now: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentFacts:
    """The present configuration and libraries, compared with those recorded when the run started."""

    configured: bool = False  # whether the agent has a configuration
    recorded: bool = True  # whether one was recorded
    fault: str = ""  # why the recorded one no longer fits the agent's
    changed: tuple[str, ...] = ()  # the names whose values would differ from the recorded ones
    libraries: tuple[Library, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteProgram:
    """The external program that has the code of an external agent."""

    name: str = ""  # what it calls itself
    heard: str = ""  # how long ago it was last in contact, in words
    missed: bool = False
    deferred: bool = False  # it announced that it goes away meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCode:
    """The agent's code, as far as this process knows it.

    `deployed`: the run's version is here, with the very plan of the run; `changed`: with another plan. `faults`,
    `doubts` and `environment` are those of the version that would go on, and empty where none would.
    """

    agent: str
    version: str
    deployed: bool = False
    changed: bool = False
    newest: str = ""  # the newest version here
    lacks: tuple[str, ...] = ()  # the run's steps that the newest version does not have
    takeover: Takeover | None = None
    faults: tuple[str, ...] = ()  # faults of the state's fields, which no step could read
    doubts: tuple[str, ...] = ()  # faults of the state as a whole, for which an edit would be refused
    environment: EnvironmentFacts | None = None
    program: RemoteProgram | None = None  # of an external agent

    @property
    def goes_on_in(self) -> str:
        """Return the version that would go on; "" where none can."""
        if self.takeover and not (self.takeover.fault or self.takeover.lacks):
            return self.takeover.version
        return self.version if self.deployed else ""


@dataclass(frozen=True, slots=True)
class UnknownCode:
    """The reason why the agent's code was not checked."""

    why: str


NOBODY = UnknownCode("The agents' code is not part of this process, so it was not checked here.")


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one check, in sentences that also say what to do, if anything."""

    check: str
    colour: str
    words: str


@dataclass(frozen=True, slots=True)
class Preflight:
    """Every check's finding, in the order in which they are made."""

    findings: tuple[Finding, ...]
    checked: bool = True  # False: the agent's code was not checked

    @property
    def colour(self) -> str:
        """Return the gravest colour of the findings."""
        return max((finding.colour for finding in self.findings), key=ORDER.index, default=AMBER)

    @property
    def red(self) -> bool:
        return self.colour == RED

    @property
    def title(self) -> str:
        """Return the heading of the findings."""
        if self.red:
            return "Not ready"
        if not self.checked:
            return "The agent's code was not checked here"
        if self.colour == AMBER:
            return f"Ready, {count_of(len(self.reasons), 'warning')}"
        return f"Ready: {count_of(len(self.findings), 'check')} passed"

    @property
    def in_order(self) -> list[Finding]:
        """List the findings, the gravest first."""
        return sorted(self.findings, key=lambda finding: -ORDER.index(finding.colour))

    @property
    def reasons(self) -> list[Finding]:
        """List the findings that are not green, the gravest first."""
        return [finding for finding in self.in_order if finding.colour != GREEN]

    def to_json(self) -> dict[str, Any]:
        """Return the preflight as the API gives it."""
        return {"colour": self.colour, "title": self.title, "findings": [asdict(item) for item in self.findings]}


def run_preflight(saved: SavedCheckpoint, code: AgentCode | UnknownCode) -> Preflight:
    """Run every check that these facts allow."""
    found = [_checkpoint(saved)]
    if isinstance(code, UnknownCode):
        found.append(Finding("version", AMBER, code.why))
    else:
        found.append(check_version(code))
        if code.goes_on_in and not saved.fault:
            found.append(_state(code))
            now = code.environment or EnvironmentFacts()
            found += [] if code.program else [_configuration(code, now), _libraries(now)]
    if not saved.fault:
        found.append(_artifacts(saved))
    return Preflight(tuple(found), checked=isinstance(code, AgentCode))


def _checkpoint(saved: SavedCheckpoint) -> Finding:
    """Check that the checkpoint loads and matches its digest."""
    if saved.fault:
        words = (
            f"Checkpoint {saved.seq} does not verify: {saved.fault}. Nothing runs from it; restore it from a backup."
        )
        return Finding("checkpoint", RED, words)
    return Finding("checkpoint", GREEN, f"Checkpoint {saved.seq} loads and verifies.")


def check_version(code: AgentCode) -> Finding:
    """Check that the run's version is deployed with its steps, or that upcasters lead to one that is."""
    if code.program:
        return _program(code, code.program)
    if code.deployed:
        words = f"Version {code.version} of {code.agent} is deployed, with the run's own steps."
        return Finding("version", GREEN, words)
    if code.changed:
        words = (
            f"The code of {code.agent} {code.version} changed since the run began, so nothing takes the "
            "run on. Put that code back, give the class another version (with an "
            f'@upcast("{code.version}") it takes the run over), or cancel the run.'
        )
        return Finding("version", RED, words)
    if code.takeover is not None:
        return _taken(code.takeover, code.version)
    lacks = f", and has no {noun_for(len(code.lacks), 'step')} {_few(code.lacks)}" if code.lacks else ""
    words = (
        f"Version {code.version} is not deployed; version {code.newest} is{lacks}. Write an upcaster from "
        f"{code.version} to {code.newest}, or deploy version {code.version} again."
    )
    return Finding("version", RED, words)


def _program(code: AgentCode, program: RemoteProgram) -> Finding:
    """Check that the external program is there to act on a decision."""
    name = f" ({quote_titles([program.name])})" if program.name else ""
    if program.deferred:
        words = f"{code.agent} is an external agent: its program{name} is paused and comes back for the outcome."
        return Finding("program", GREEN, words)
    if program.missed:
        words = (
            f"{code.agent} is an external agent, and its program{name} was last seen {program.heard} ago. Your "
            "decision is kept and carried out when it comes back."
        )
        return Finding("program", AMBER, words)
    words = f"{code.agent} is an external agent: its program{name} was last seen {program.heard} ago."
    return Finding("program", GREEN, words)


def _taken(by: Takeover, old: str) -> Finding:
    """Check that another version can take the run over from the version `old`, which is not deployed."""
    gone = f"Version {old} is not deployed"
    upcasters = f"{noun_for(len(by.upcasters), 'upcaster')} {_few(by.upcasters)}"
    if by.lacks:
        named = noun_for(len(by.upcasters), "names", "name")
        words = (
            f"{gone}; version {by.version} has no {noun_for(len(by.lacks), 'step')} {_few(by.lacks)}. Its "
            f"{upcasters} {named} no other: name its successor there, or deploy version {old} again."
        )
        return Finding("version", RED, words)
    if by.fault:
        words = (
            f"{gone}, and version {by.version} cannot take the run: {by.fault} "
            f"Correct it, or deploy version {old} again."
        )
        return Finding("version", RED, words)
    runs = noun_for(len(by.upcasters), "runs", "run")
    words = f"{gone}. Version {by.version} takes the run: its {upcasters} {runs} first."
    renamed = [f"{old} is now {new}." for old, new in by.renamed]
    again = "Approvals are not carried over: the agent asks again."
    return Finding("version", AMBER, " ".join([words, *renamed, again]))


def _state(code: AgentCode) -> Finding:
    """Check that the state fits the schema of the version that would go on."""
    what = "The state" if code.deployed else "What the upcasters make of the state"
    if code.faults:
        faults = _few(code.faults, "; ")
        words = f"{what} does not fit version {code.goes_on_in}: {faults}. Rewind the run, or edit its state."
        return Finding("state", RED, words)
    if code.doubts:
        words = (
            f"Every field of the state fits version {code.goes_on_in}, the whole does not: {_few(code.doubts, '; ')}"
            ". Steps run, an edit is refused."
        )
        return Finding("state", AMBER, words)
    return Finding("state", GREEN, f"{what} fits the schema of version {code.goes_on_in}.")


def _configuration(code: AgentCode, now: EnvironmentFacts) -> Finding:
    """Check that the configuration is the one that was recorded."""
    if now.fault:
        words = f"The recorded configuration does not fit version {code.goes_on_in}: {now.fault}. Correct its Config."
        return Finding("configuration", RED, words)
    if not now.configured:
        return Finding("configuration", GREEN, "The agent has no configuration.")
    if not now.recorded:
        words = "No configuration was recorded when the run started; it goes on with the defaults of today."
        return Finding("configuration", AMBER, words)
    if now.changed:
        words = f"The configuration would not be what was recorded when the run started: {_few(now.changed)} differs."
        return Finding("configuration", AMBER, words)
    return Finding("configuration", GREEN, "The configuration is the recorded one.")


def _libraries(now: EnvironmentFacts) -> Finding:
    """Check that the libraries are those that were recorded."""
    if not now.libraries:
        return Finding("libraries", GREEN, "The agent declares no libraries.")
    gone = [
        f"{library.name} {library.recorded}" for library in now.libraries if library.recorded and library.now is None
    ]
    if gone:
        return Finding("libraries", RED, f"Not installed here: {_few(gone)}. Install it again.")
    other = [_other(library) for library in now.libraries if library.recorded != library.now or library.now is None]
    if other:
        return Finding("libraries", AMBER, f"{_few(other, '; ')}.")
    same = _few([f"{library.name} {library.now}" for library in now.libraries])
    return Finding("libraries", GREEN, f"{same}, as recorded.")


def _other(library: Library) -> str:
    now, recorded = library.now or "not installed", library.recorded or "not installed"
    if library.recorded == "":
        return f"{library.name} is {now} here, and was not recorded when the run started"
    return f"{library.name} was {recorded} when the run started and is {now} here"


def _artifacts(saved: SavedCheckpoint) -> Finding:
    """Check that the artifacts that the state names are there."""
    if not saved.artifacts:
        return Finding("artifacts", GREEN, "The state names no artifacts.")
    if saved.unseen:
        words = f"The file storage could not be asked for what the state names: {saved.unseen}."
        return Finding("artifacts", AMBER, words)
    if saved.missing:
        words = (
            f"{count_of(len(saved.missing), 'artifact')} of the state cannot be found, or not whole: "
            f"{_few(saved.missing)}. Restore the file storage from a backup."
        )
        return Finding("artifacts", RED, words)
    return Finding("artifacts", GREEN, f"{count_of(saved.artifacts, 'artifact')} that the state names can be found.")


def _few(things: Sequence[str], by: str = ", ") -> str:
    """List the first NAMED of them, and say how many more."""
    first, more = by.join(things[:NAMED]), len(things) - NAMED
    return f"{first} and {more} more" if more > 0 else first
