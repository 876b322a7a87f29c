"""The form of a policy's version, in the administration and for files of policies."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import Group, User
from django.db.models import Q
from django.utils.text import format_lazy

from approvals.models import Policy
from approvals.models.policy import PAUSE, SAMPLE, SETTINGS, people_named
from approvals.policy import enough_reviewers, required
from approvals.policy.required import MOST, Level, lines
from approvals.policy.rules import written
from approvals.policy.rules.written import Directory, WrongText
from approvals.policy_changes import changes
from approvals.policy_changes.changes import in_force
from approvals.policy_changes.simulation import simulate
from checkpoints.admin.base import VersionedForm
from checkpoints.admin.durations import HOW, Duration, parse_duration

HELP = (
    "A line for each level, such as “Directors after 2 h” or “Directors at the deadline, 4 h more”. The team's people "
    "then decide, too. After the last level the deadline does what is chosen above."
)
_LINE = re.compile(
    r"(?P<team>.+?)\s+(?:after\s+(?P<after>.+)|at the deadline(?:,\s*(?P<more>.+?)\s+more)?)\s*$", re.IGNORECASE
)
SHORTEST = timedelta(minutes=1)
LEAST_UNDO, MOST_UNDO = timedelta(seconds=5), timedelta(days=1)
PATIENCE = timedelta(minutes=2)  # before the gates of a silent external program may be withdrawn
# Examples of what to write.
STAGES = "1 of Finance and 1 of Support\n1 of Legal"
RULES = """[[rule]]
name = "small"
when = 'amount < 50 && customer.tier == "gold"'
approvals = 1

[[rule]]
name = "large"
when = "amount >= 1000"
stages = ["2 of Finance", "1 of Legal"]
"""


class EscalationField(forms.CharField):
    """Levels of an escalation, stored as approvals.policy.required says."""

    def __init__(self, **options: Any) -> None:
        box = forms.Textarea(attrs={"rows": 3, "cols": 60})
        super().__init__(required=False, label="Escalation", help_text=HELP, widget=box, **options)

    def prepare_value(self, value: Any) -> Any:
        """Write stored levels, a line for each; typed text unchanged."""
        return "\n".join(lines(value)) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """Read the lines. Raises ValidationError, which says what is wrong."""
        typed = [line.strip() for line in str(value or "").splitlines() if line.strip()]
        if len(typed) > MOST:
            raise forms.ValidationError(f"Write at most {MOST} levels.")
        return [_level(line).to_json() for line in typed]


def _level(line: str) -> Level:
    found = _LINE.match(line)
    if found is None:
        raise forms.ValidationError(f"“{line}” names no team and time. {HELP}")
    team = Group.objects.filter(name=found["team"]).first()
    if team is None:
        raise forms.ValidationError(f"There is no team {found['team']}.")
    return Level(team.pk, _span(found["after"]), _span(found["more"]))


def _span(words: str | None) -> timedelta | None:
    if words is None:
        return None
    span = parse_duration(words)
    if span is None or span < SHORTEST:
        raise forms.ValidationError(f"“{words}” is no duration of a minute or more.")
    return span


class PolicyForm(VersionedForm[Policy]):
    """The form of a policy version; each field says what it does."""

    deadline = Duration(
        least=SHORTEST,
        too_short="That is less than a minute, too short for anybody to decide.",
        help_text=format_lazy("{} {}", HOW, "Empty: no deadline."),
    )
    withdraw_after = Duration(
        least=PATIENCE,
        too_short="Programs report once a minute: write 2 min or more.",
        label="Withdraw if the external agent is offline for",
        help_text="Applies to external agents that have not announced a pause. For example 10 min. Empty: never.",
    )

    undo_window = Duration(
        least=LEAST_UNDO,
        too_short="That is less than 5 seconds, too short for anybody to undo anything.",
        label="Time to undo",
        help_text=(
            "Where one approval closes a gate: how long a decision waits before it takes effect. Until then whoever "
            "made it can undo it, and others can reject it. For example 30 s. Empty: it takes effect at once."
        ),
    )
    pause = Duration(
        initial=PAUSE,
        least=SHORTEST,
        too_short="That is less than a minute, too short to make a difference.",
        label="Pause before a third attempt",
        help_text=format_lazy(
            "{} {}",
            HOW,
            (
                "An agent that was rejected twice waits this long after the last rejection before it asks the same "
                "again. What a person sent back may be asked again at once. Empty: no pause."
            ),
        ),
    )

    stages = forms.CharField(
        required=False,
        label="Stages",
        widget=forms.Textarea(attrs={"rows": 3, "class": "policy-text", "placeholder": STAGES, "spellcheck": "false"}),
        help_text=(
            "Where some have to approve before others, or one of each of several teams: one stage a line. “2 of "
            "Finance”, “1 of Finance and 1 of Legal”, “1 of Legal or @mira”. They replace “Decided by”, “People” and "
            "“Approvals needed”."
        ),
    )
    rules = forms.CharField(
        required=False,
        label="Rules",
        widget=forms.Textarea(attrs={"rows": 12, "class": "policy-text", "placeholder": RULES, "spellcheck": "false"}),
        help_text=(
            "What is asked of some proposals instead, by their fields. The first rule that is true counts. A rule "
            "that cannot be evaluated counts beside the rest, so that nothing is let through. See docs/policies.md."
        ),
    )

    remind_before = Duration(
        least=SHORTEST,
        too_short="That is less than a minute, too short for anybody to be reached.",
        label="Remind before the deadline",
        help_text="For example 2 h. Empty: when the share below of the time is left.",
    )
    escalation = EscalationField()

    class Meta:
        model = Policy
        fields = (
            "team", "name", "groups", "people", "quorum", "stages", "rules", "auto_sample", "separation",
            "reason_required", "step_up", "step_up_method", "tokens_decide", "bulk_risk", "deadline", "on_expiry",
            "undo_window", "escalation", "calendar", "withdraw_after", "whole_state", "registered_only", "hourly",
            "pause", "leaves", "remind_before", "remind_share",
        )  # fmt: skip
        labels = {
            "groups": "Decided by",
            "people": "People",
            "quorum": "Approvals needed",
            "separation": "Requester cannot approve (four-eyes)",
            "step_up": "Require confirmation",
            "step_up_method": "Confirmed by",
            "on_expiry": "After the deadline",
            "hourly": "Gates per hour",
            "leaves": "Messages may say",
            "remind_share": "Remind at",
            "calendar": "Counts working time of",
        }
        help_texts = {
            "name": (
                "Agents' gates ask for a policy by this name. “default” is for gates that name none. If the team has "
                "a policy of this name, saving makes its next version."
            ),
            "groups": "The teams whose members may decide. No team and nobody: the policy's own team.",
            "people": "People who may decide beside these teams, or alone, whatever teams they are in.",
            "quorum": "How many different people must approve the same version of a gate.",
            "separation": (
                "The person who started a run, or who owns the token that started it or asks, cannot approve its "
                "gates, nor can those who changed its state, answered it or sent it a signal before."
            ),
            "hourly": (
                "How many gates one agent may open in the team within an hour. An external agent over the limit is "
                "told when to try again; a run of an agent on this server waits in the queue. Empty: no limit."
            ),
            "step_up": (
                "Reviewers confirm who they are before they decide: by their password, their passkey, or a code of "
                "their authenticator app. API tokens cannot decide then."
            ),
            "step_up_method": (
                "With “passkey only” people without a passkey cannot decide until they add one to their account."
            ),
            "leaves": "What e-mails and other messages to reviewers show. They pass through other servers.",
            "remind_share": (
                "Percent of the time to the deadline that is left when those who have not decided are reminded. "
                "0: never. People may choose another time for themselves."
            ),
            "calendar": (
                "The deadline and the escalation count only this calendar's hours. None chosen: all hours count."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Begin a new policy without decisions by token: who wants them says so."""
        super().__init__(*args, **kwargs)
        self.directory = Directory.now()
        for name in ("auto_sample", "leaves", "remind_share", "step_up_method"):
            if name in self.fields:  # none of them where it is read only
                self.fields[name].required = False
        if "people" in self.fields:
            known = Q(is_active=True) | Q(pk__in=people_named(self.instance.pk))
            self.fields["people"].queryset = User.objects.filter(known)  # type: ignore[attr-defined]
        if not self.instance.pk:
            self.initial["tokens_decide"] = False
            return
        stages = required.own(self.instance).stages
        apart = not required.own(self.instance).staged
        role = stages[0].roles[0]
        self.initial["stages"] = "" if apart else written.stages_text(stages, self.directory)
        self.initial["rules"] = written.rules_text(required.rules_of(self.instance.rules), self.directory)
        if self.instance.stages:
            chosen = (list(role.teams), list(role.people), role.quorum) if apart else ([], [], 1)
            self.initial["groups"], self.initial["people"], self.initial["quorum"] = chosen

    @classmethod
    def newest_of(cls, row: Policy) -> Policy:
        """Return the version that a change is measured by; the newest where nobody vouches for any."""
        return in_force(row) or super().newest_of(row)

    def clean_auto_sample(self) -> int:
        """Take an empty field as the default."""
        sample = self.cleaned_data["auto_sample"]
        return SAMPLE if sample is None else sample

    def clean_stages(self) -> str:
        """Read the stages, one a line."""
        try:
            return written.stored_stages(written.stages_from(self.cleaned_data["stages"], self.directory))
        except WrongText as wrong:
            raise forms.ValidationError(str(wrong)) from None

    def clean_rules(self) -> str:
        try:
            return written.stored_rules(written.rules_from(self.cleaned_data["rules"], self.directory))
        except WrongText as wrong:
            raise forms.ValidationError(str(wrong)) from None

    def clean_remind_share(self) -> int:
        """Return the share; empty: never, and what it was where the form has no such field."""
        sent: int | None = self.cleaned_data["remind_share"]
        before: int = self.instance.remind_share
        return (sent or 0) if self.add_prefix("remind_share") in self.data else before

    def clean_step_up_method(self) -> str:
        """Take what is chosen, or any method."""
        return self.cleaned_data["step_up_method"] or str(Policy.StepUpMethod.ANY)

    def clean(self) -> dict[str, Any]:
        """Refuse an edit of an outdated version, and a policy whose reviewers are too few."""
        data = super().clean()
        team = data.get("team") or (self.instance.team if self.instance.pk else None)
        if not team or not {"quorum", "groups", "people", "stages", "rules"} <= data.keys() or not data["quorum"]:
            return data
        if data["stages"] and (data["groups"] or data["people"]):
            self.add_error("stages", "Leave “Decided by” and “People” empty where stages say who decides.")
            return data
        draft = Policy(team=team, **{name: data[name] for name in ("quorum", "stages", "rules")})
        chosen, people = [group.pk for group in data["groups"]], [person.pk for person in data["people"]]
        draft.reviewer_ids = chosen or ([] if people else [team.pk])
        draft.person_ids = people
        self._check_reviewers(draft)
        calendar = data.get("calendar")
        if team and calendar and calendar.team_id != team.pk:
            self.add_error("calendar", f"This calendar is of another team. Choose one of {team}.")
        if (data.get("undo_window") or LEAST_UNDO) > MOST_UNDO:
            self.add_error("undo_window", "That is more than a day: write 24 h or less.")
        if "_simulate" in self.data and not self.errors:
            self._simulate(data, team)
        return data

    def _simulate(self, data: dict[str, Any], team: Group) -> None:
        """Compute what the entered policy would have asked, and refuse to save it in the same request."""
        name = data.get("name") or self.instance.name
        settings = {setting: data[setting] for setting in SETTINGS if setting in data}
        drafted = Policy(team=team, name=name, calendar=data.get("calendar"), **settings)
        self.simulated = simulate(drafted, groups=data["groups"], people=data["people"])
        self.milder = changes.compared(drafted, data["groups"], data["people"])
        raise forms.ValidationError("Nothing is saved yet.")

    def _check_reviewers(self, draft: Policy) -> None:
        own, names = required.own(draft), self.directory.names
        if short := enough_reviewers.too_few(own, names):
            self.add_error("stages" if draft.stages else "quorum", short)
        for rule in required.rules_of(draft.rules):
            if "quorum" in rule.require and own.staged:
                words = f"Rule “{rule.name}”: write stages instead of approvals, as the policy has stages."
                self.add_error("rules", words)
            elif short := enough_reviewers.too_few(rule.applied(own), names):
                self.add_error("rules", f"Rule “{rule.name}”: {short}")
