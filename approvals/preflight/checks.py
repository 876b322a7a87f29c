"""The checks of a preflight: facts in, findings in green, amber and red out. Pure.

Red: the run cannot go on from here as things are, so no decision is taken. Amber: it can, or this process cannot tell,
and the reviewer should know what is different. Green is only what was checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.english import quoted

from .facts import AgentCode, EnvironmentFacts, Library, RemoteProgram, SavedCheckpoint, Takeover, UnknownCode

GREEN, AMBER, RED = "green", "amber", "red"
ORDER = (GREEN, AMBER, RED)  # from calm to grave
NAMED = 3  # of many things, in one sentence


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
            return _("Not ready")
        if not self.checked:
            return _("The agent's code was not checked here")
        if self.colour == AMBER:
            count = len(self.reasons)
            said = ngettext("Ready, %(count)s warning", "Ready, %(count)s warnings", count)
        else:
            count = len(self.findings)
            said = ngettext("Ready: %(count)s check passed", "Ready: %(count)s checks passed", count)
        return said % {"count": count}

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
        findings = [{"check": each.check, "colour": each.colour, "words": each.words} for each in self.findings]
        return {"colour": self.colour, "title": self.title, "findings": findings}


def judge(saved: SavedCheckpoint, code: AgentCode | UnknownCode) -> Preflight:
    """Run every check that these facts allow."""
    found = [checkpoint(saved)]
    if isinstance(code, UnknownCode):
        found.append(Finding("version", AMBER, str(code.why)))
    else:
        found.append(version(code))
        if code.goes_on_in and not saved.fault:
            found.append(state(code))
            now = code.environment or EnvironmentFacts()
            found += [] if code.program else [configuration(code, now), libraries(now)]
    if not saved.fault:
        found.append(artifacts(saved))
    return Preflight(tuple(found), checked=isinstance(code, AgentCode))


def checkpoint(saved: SavedCheckpoint) -> Finding:
    """Check that the checkpoint loads and matches its digest."""
    if saved.fault:
        said = _("Checkpoint %(seq)s does not verify: %(fault)s. Nothing runs from it; restore it from a backup.")
        return Finding("checkpoint", RED, said % {"seq": saved.seq, "fault": saved.fault})
    return Finding("checkpoint", GREEN, _("Checkpoint %(seq)s loads and verifies.") % {"seq": saved.seq})


def version(code: AgentCode) -> Finding:
    """Check that the run's version is deployed with its steps, or that upcasters lead to one that is."""
    if code.program:
        return _program(code, code.program)
    names = {"agent": code.agent, "version": code.version, "newest": code.newest}
    if code.deployed:
        said = _("Version %(version)s of %(agent)s is deployed, with the run's own steps.")
        return Finding("version", GREEN, said % names)
    if code.changed:
        said = _(
            "The code of %(agent)s %(version)s changed since the run began, so nothing takes the run on. Put that code "
            'back, give the class another version (with an @upcast("%(version)s") it takes the run over), or cancel '
            "the run."
        )
        return Finding("version", RED, said % names)
    if code.takeover is not None:
        return _taken(code.takeover, code.version)
    said = _(
        "Version %(version)s is not deployed; version %(newest)s is. Write an upcaster from %(version)s to "
        "%(newest)s, or deploy version %(version)s again."
    )
    if code.lacks:
        said = ngettext(
            "Version %(version)s is not deployed; version %(newest)s is, and has no step %(steps)s. Write an upcaster "
            "from %(version)s to %(newest)s, or deploy version %(version)s again.",
            "Version %(version)s is not deployed; version %(newest)s is, and has no steps %(steps)s. Write an upcaster "
            "from %(version)s to %(newest)s, or deploy version %(version)s again.",
            len(code.lacks),
        )
    return Finding("version", RED, said % {**names, "steps": listed(code.lacks)})


def _program(code: AgentCode, program: RemoteProgram) -> Finding:
    """Check that the external program is there to act on a decision."""
    names = {"agent": code.agent, "name": f" ({quoted([program.name])})" if program.name else "", "time": program.heard}
    if program.deferred:
        said = _("%(agent)s is an external agent: its program%(name)s is paused and comes back for the outcome.")
        return Finding("program", GREEN, said % names)
    if program.missed:
        said = _(
            "%(agent)s is an external agent, and its program%(name)s was last seen %(time)s ago. Your decision is kept "
            "and carried out when it comes back."
        )
        return Finding("program", AMBER, said % names)
    said = _("%(agent)s is an external agent: its program%(name)s was last seen %(time)s ago.")
    return Finding("program", GREEN, said % names)


def _taken(by: Takeover, old: str) -> Finding:
    """Check that another version can take the run over from the version `old`, which is not deployed."""
    names = {"old": old, "new": by.version, "upcasters": listed(by.upcasters), "fault": by.fault}
    if by.lacks:
        lacks = ngettext(
            "Version %(old)s is not deployed; version %(new)s has no step %(steps)s.",
            "Version %(old)s is not deployed; version %(new)s has no steps %(steps)s.",
            len(by.lacks),
        )
        instead = ngettext(
            "Its upcaster %(upcasters)s names no other: name its successor there, or deploy version %(old)s again.",
            "Its upcasters %(upcasters)s name no other: name its successor there, or deploy version %(old)s again.",
            len(by.upcasters),
        )
        return Finding("version", RED, f"{lacks} {instead}" % {**names, "steps": listed(by.lacks)})
    if by.fault:
        said = _(
            "Version %(old)s is not deployed, and version %(new)s cannot take the run: %(fault)s Correct it, or deploy "
            "version %(old)s again."
        )
        return Finding("version", RED, said % names)
    said = ngettext(
        "Version %(old)s is not deployed. Version %(new)s takes the run: its upcaster %(upcasters)s runs first.",
        "Version %(old)s is not deployed. Version %(new)s takes the run: its upcasters %(upcasters)s run first.",
        len(by.upcasters),
    )
    renamed = [_("%(old)s is now %(new)s.") % {"old": old, "new": new} for old, new in by.renamed]
    again = _("Approvals are not carried over: the agent asks again.")
    return Finding("version", AMBER, " ".join([said % names, *renamed, again]))


def state(code: AgentCode) -> Finding:
    """Check that the state fits the schema of the version that would go on."""
    names = {"version": code.goes_on_in}
    if code.faults:
        said = (
            _("The state does not fit version %(version)s: %(faults)s. Rewind the run, or edit its state.")
            if code.deployed
            else _(
                "What the upcasters make of the state does not fit version %(version)s: %(faults)s. Rewind the run, or "
                "edit its state."
            )
        )
        return Finding("state", RED, said % {**names, "faults": listed(code.faults, "; ")})
    if code.doubts:
        said = _(
            "Every field of the state fits version %(version)s, the whole does not: %(faults)s. Steps run, an edit is "
            "refused."
        )
        return Finding("state", AMBER, said % {**names, "faults": listed(code.doubts, "; ")})
    said = (
        _("The state fits the schema of version %(version)s.")
        if code.deployed
        else _("What the upcasters make of the state fits the schema of version %(version)s.")
    )
    return Finding("state", GREEN, said % names)


def configuration(code: AgentCode, now: EnvironmentFacts) -> Finding:
    """Check that the configuration is the one that was recorded."""
    if now.fault:
        said = _("The recorded configuration does not fit version %(version)s: %(fault)s. Correct its Config.")
        return Finding("configuration", RED, said % {"version": code.goes_on_in, "fault": now.fault})
    if not now.configured:
        return Finding("configuration", GREEN, _("The agent has no configuration."))
    if not now.recorded:
        said = _("No configuration was recorded when the run started; it goes on with the defaults of today.")
        return Finding("configuration", AMBER, said)
    if now.changed:
        said = _("The configuration would not be what was recorded when the run started: %(names)s differs.")
        return Finding("configuration", AMBER, said % {"names": listed(now.changed)})
    return Finding("configuration", GREEN, _("The configuration is the recorded one."))


def libraries(now: EnvironmentFacts) -> Finding:
    """Check that the libraries are those that were recorded."""
    if not now.libraries:
        return Finding("libraries", GREEN, _("The agent declares no libraries."))
    gone = [f"{each.name} {each.recorded}" for each in now.libraries if each.recorded and each.now is None]
    if gone:
        said = _("Not installed here: %(libraries)s. Install it again.")
        return Finding("libraries", RED, said % {"libraries": listed(gone)})
    other = [_other(each) for each in now.libraries if each.recorded != each.now or each.now is None]
    if other:
        return Finding("libraries", AMBER, f"{listed(other, '; ')}.")
    same = listed([f"{each.name} {each.now}" for each in now.libraries])
    return Finding("libraries", GREEN, _("%(libraries)s, as recorded.") % {"libraries": same})


def _other(library: Library) -> str:
    names = {
        "library": library.name,
        "now": library.now or _("not installed"),
        "recorded": library.recorded or _("not installed"),
    }
    if library.recorded == "":
        return _("%(library)s is %(now)s here, and was not recorded when the run started") % names
    return _("%(library)s was %(recorded)s when the run started and is %(now)s here") % names


def artifacts(saved: SavedCheckpoint) -> Finding:
    """Check that the artifacts that the state names are there."""
    if not saved.artifacts:
        return Finding("artifacts", GREEN, _("The state names no artifacts."))
    if saved.unseen:
        said = _("The file storage could not be asked for what the state names: %(fault)s.")
        return Finding("artifacts", AMBER, said % {"fault": saved.unseen})
    if saved.missing:
        said = ngettext(
            "%(count)s artifact of the state cannot be found, or not whole: %(places)s. Restore the file storage from "
            "a backup.",
            "%(count)s artifacts of the state cannot be found, or not whole: %(places)s. Restore the file storage from "
            "a backup.",
            len(saved.missing),
        )
        return Finding("artifacts", RED, said % {"count": len(saved.missing), "places": listed(saved.missing)})
    said = ngettext(
        "%(count)s artifact that the state names can be found.",
        "%(count)s artifacts that the state names can be found.",
        saved.artifacts,
    )
    return Finding("artifacts", GREEN, said % {"count": f"{saved.artifacts:,}"})


def listed(things: Sequence[str], by: str = ", ") -> str:
    """List the first NAMED of them, and say how many more."""
    first, more = by.join(things[:NAMED]), len(things) - NAMED
    return _("%(first)s and %(count)s more") % {"first": first, "count": more} if more > 0 else first
