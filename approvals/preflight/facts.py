"""The facts that a preflight judges: the saved checkpoint, and the code that would go on. Pure."""

from __future__ import annotations

from dataclasses import dataclass


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
