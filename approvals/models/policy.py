"""Policies: the reviewers of a gate, their quorum, the deadline, and what happens after it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.postgres.expressions import ArraySubquery
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.functional import cached_property

from approvals.errors import NoSuchPolicy, UnprovenPolicy
from checkpoints.access import permissions, token_scope
from checkpoints.actors import SYSTEM, Actor
from checkpoints.events import event_log
from checkpoints.events.event_proof import ROWS
from checkpoints.postgresql.prepared_rows import prepared_statement
from checkpoints.postgresql.sql import run_sql

from .assignments.reviewers import LentPolicy
from .row_digests import are_proven, digest_row

DEFAULT = "default"
RECOVERY = "recovery"  # made where none of a team's policies is proven, and a gate has to open all the same
HOURLY = 120  # two a minute, all day long
PAUSE = timedelta(minutes=10)
SAMPLE = 10  # percent
# The settings of a version, beside its team, its name and its reviewers.
SETTINGS = (
    "quorum", "separation", "deadline", "on_expiry", "whole_state", "reason_required", "step_up", "step_up_method",
    "tokens_decide", "registered_only", "withdraw_after", "hourly", "pause", "denials", "stages", "rules",
    "auto_sample", "leaves", "remind_before", "remind_share", "undo_window", "bulk_risk", "calendar_id", "escalation",
)  # fmt: skip
COVERED = ("team_id", "name", "version", *SETTINGS)
_REACH = """
SELECT ARRAY(SELECT r.team_id FROM approvals_reviewing r JOIN auth_group g ON g.id = r.team_id
  WHERE r.policy_id = $1 ORDER BY g.name),
ARRAY(SELECT user_id FROM approvals_policy_people WHERE policy_id = $1 ORDER BY user_id)
"""
_NAMES = "SELECT name FROM approvals_policy WHERE team_id = $1"


class PolicyQuerySet(models.QuerySet["Policy"]):
    """Queries of policies."""

    def named(self, name: str, *, team: Group, strict: bool = True, exact: bool = False) -> Policy:
        """Find the newest version of the team's policy of that name; without a name, of its default.

        A team without any policy gets a default: one approval, not by the person who started the run. In a team with
        policies an unknown name raises NoSuchPolicy, and a newest version that no proven event tells of UnprovenPolicy;
        `exact`: as for `expect`. Not `strict`, for gates that have to open all the same: then the newest proven version
        of that name counts, else the team's default, its strictest policy, or one that is made for this.
        """
        asked = name or DEFAULT
        for found in _newest(team.pk, asked):
            found.team = team
            if found.proven:
                return found
            if strict:
                raise UnprovenPolicy(found.name, found.version, team.name)
        if strict:
            self.expect(name, team=team, exact=exact)
            return self._built_in(team) if asked == DEFAULT else self.named(DEFAULT, team=team)
        proven = self.standing_in(asked, team=team)
        return proven if proven is not None else self._made(team)

    def standing_in(self, name: str, *, team: Group | int) -> Policy | None:
        """Find the policy that `named` finds where it is not strict; None where it would make one. Writes nothing."""
        versions, proven = list(self.filter(team=team).order_by("-version")), dict[str, Policy]()
        for version in versions:
            if version.name == (name or DEFAULT) and version.proven:
                return version
        for version in versions:
            if version.name not in proven and version.proven:
                proven[version.name] = version
        return max(
            proven.values(),
            key=lambda each: (each.name == DEFAULT, each.quorum, each.step_up, each.step_up_method, each.separation),
            default=None,
        )

    def _made(self, team: Group) -> Policy:
        """Make a policy where the team has none that is proven.

        It takes no name by which the team's agents ask, so that rows slipped in make nothing else milder.
        """
        versions = list(self.filter(team=team).values_list("name", "version"))
        if not versions:
            return self._built_in(team)
        taken = (version for name, version in versions if name == RECOVERY)
        return self._built_in(team, RECOVERY, 1 + max(taken, default=0))

    def _built_in(self, team: Group, name: str = DEFAULT, version: int = 1) -> Policy:
        with transaction.atomic():
            made, new = self.get_or_create(team=team, name=name, version=version)
            if new:
                made.record("policy.changed", by=SYSTEM)
        return made

    def expect(self, name: str, *, team: Group, exact: bool = False) -> None:
        """Raise NoSuchPolicy where the team has policies, and none of this name. Writes nothing.

        `exact`: also where the team has none yet, unless the default is meant.
        """
        asked, names = name or DEFAULT, {found for (found,) in run_sql(_NAMES, [team.pk])}
        without = names <= {DEFAULT} and (asked == DEFAULT or not exact)
        if asked not in names and not without:
            raise NoSuchPolicy(asked, team.name, sorted(names) or [DEFAULT])

    def decided_by(self, user: Any) -> PolicyQuerySet:
        """Select those under which this person may decide in their own name; by a token, those in its scope."""
        mine = ReviewingTeam.objects.filter(team__in=permissions.teams_granting(user, permissions.DECIDE_GATE))
        named = Policy.people.through.objects.filter(user__in=permissions.teams_granting(user, permissions.NAMED))
        asked = self.filter(Q(pk__in=mine.values("policy")) | Q(pk__in=named.values("policy")))
        return token_scope.bounds_of(user).narrow(asked, team="team_id")

    def lent_to(self, user: Any) -> PolicyQuerySet:
        """Select those under which this person may decide for somebody who is away; by a token, those in its scope."""
        lent = LentPolicy.objects.filter(delegate=user.pk)
        return token_scope.bounds_of(user).narrow(self.filter(pk__in=lent.values("policy")), team="team_id")

    def current(self) -> PolicyQuerySet:
        """Select the newest version of each."""
        return self.order_by("team", "name", "-version").distinct("team", "name")


class Policy(models.Model):
    """One version of a policy. A change is a new version; a gate keeps the one it was opened under."""

    class OnExpiry(models.TextChoices):
        EXPIRE = "expire", "Expire: nothing runs, the agent is told that nobody answered in time"
        STOP = "stop", "Stop: the run ends, even if the agent has another way to go on"
        ROLLBACK = "rollback", "Roll back: the run ends, and what it did is undone where that is possible"
        ESCALATE = "escalate", "Escalate: the next group is asked"
        APPROVE = "approve", "Approve when nobody answered in time"

    class StepUpMethod(models.TextChoices):
        ANY = "any", "Password, passkey or a code from an app"
        PASSKEY = "passkey", "Passkey only"

    class Leaves(models.TextChoices):
        """The part of a gate that messages to people may hold."""

        NUMBER = "number", "Only that something waits: the gate's number, its team and its deadline"
        TITLE = "title", "Its title too"
        FACTS = "facts", "Its title and facts: amount, for whom, risk, and the actions' names"
        ALL = "all", "All that the actions show, except for secrets"

    class BulkRisk(models.TextChoices):
        NONE = "none", "None: each gate is decided by itself"
        LOW = "low", "Low risk"
        MEDIUM = "medium", "Low and medium risk"

    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="policies", db_index=False)
    name = models.SlugField(max_length=60, db_index=False)
    version = models.PositiveIntegerField(default=1)
    groups = models.ManyToManyField(Group, blank=True, related_name="+")  # empty: the team's own people
    people = models.ManyToManyField(User, blank=True, related_name="+")  # named beside the groups
    # Canonical JSON, see approvals.policy.requirements; empty: one stage of these groups and people, or no rules.
    # Whoever they name is among the groups and people too.
    stages = models.TextField(default="", db_default="", blank=True)
    rules = models.TextField(default="", db_default="", blank=True)
    # Not read: one rejection rejects. The events of policies cover it.
    denials = models.PositiveSmallIntegerField(default=1, db_default=1)
    quorum = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1)])
    separation = models.BooleanField(default=True)  # who started the run, or owns the asking token, may not decide
    deadline = models.DurationField(null=True, blank=True)
    on_expiry = models.CharField(max_length=8, choices=OnExpiry.choices, default=OnExpiry.EXPIRE)
    whole_state = models.BooleanField(
        "allow editing the whole state",
        default=False,
        db_default=False,
        help_text=(
            "Reviewers may edit the run's whole saved state as JSON, not only the values that the gate asks about. The "
            "agent's own rules still check the edit, and others must approve again. If a gate has several actions with "
            "a verdict each, only the API accepts such an edit."
        ),
    )
    reason_required = models.BooleanField(
        "require a reason to reject",
        default=True,
        db_default=True,
        help_text="The reason is kept with the decision. The agent reads it if the run is sent back.",
    )
    step_up = models.BooleanField(default=False, db_default=False)  # only after a recent confirmation of who decides
    step_up_method = models.CharField(
        max_length=8, choices=StepUpMethod.choices, default=StepUpMethod.ANY, db_default=StepUpMethod.ANY
    )
    # Policies that are made in the administration begin without; those from before it existed have it.
    tokens_decide = models.BooleanField(
        "API tokens may decide",
        default=True,
        db_default=True,
        help_text=(
            "Reviewers may also decide by a token of their own with the scope gates:decide, as in a terminal or a "
            "script. Otherwise they decide only on the gate's page. An agent's token never decides."
        ),
    )
    registered_only = models.BooleanField(
        "registered tools only",
        default=False,
        db_default=False,
        help_text=(
            "Every action must name a tool that is registered for the team, and match its schema. Other requests of "
            "external agents are refused; a run of an agent on this server is held, and people are asked how to "
            "continue."
        ),
    )
    # How long an external agent's program may be silent before its gate is withdrawn; null: no limit.
    withdraw_after = models.DurationField(null=True, blank=True)
    hourly = models.PositiveIntegerField(  # gates that one agent may open in the team; null: any number
        default=HOURLY, db_default=HOURLY, null=True, blank=True, validators=[MinValueValidator(1)]
    )
    # The pause after the second rejection of the same, see approvals.policy.pacing.
    pause = models.DurationField(default=PAUSE, db_default=PAUSE, null=True, blank=True)
    auto_sample = models.PositiveSmallIntegerField(
        "sample of automatic approvals",
        default=SAMPLE,
        db_default=SAMPLE,
        validators=[MaxValueValidator(100)],
        help_text=(
            "Percent of the gates that a rule would approve by itself which people decide all the same. The insights "
            "compare their verdicts with the rule's."
        ),
    )
    # Messages to people, see approvals.notifications.
    leaves = models.CharField(max_length=6, choices=Leaves.choices, default=Leaves.TITLE, db_default="title")
    remind_before = models.DurationField(null=True, blank=True)  # before the deadline; null: see `remind_share`
    remind_share = models.PositiveSmallIntegerField(  # percent of the time to the deadline that is left; 0: never
        default=25, db_default=25, validators=[MaxValueValidator(90)]
    )
    # How long a decision may be undone before it takes effect; null: it takes effect at once.
    undo_window = models.DurationField(null=True, blank=True)
    # The highest risk at which several gates may be decided together, see approvals.policy.bulk.
    bulk_risk = models.CharField(
        "decided together up to",
        max_length=6,
        choices=BulkRisk.choices,
        default=BulkRisk.LOW,
        db_default=BulkRisk.LOW,
        help_text=(
            "Reviewers may decide several gates of one kind together from the inbox, if none has a higher risk. High "
            "and critical risk are always decided one by one."
        ),
    )
    # Working time by which the deadline and the escalations count; null: all time. Without a constraint or an index,
    # as a calendar is never deleted.
    calendar = models.ForeignKey(
        "approvals.Calendar", null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_constraint=False,
        db_index=False,
    )  # fmt: skip
    escalation = models.JSONField(default=list, db_default=models.Value([], models.JSONField()), blank=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = PolicyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "policies"
        constraints = [
            models.UniqueConstraint(fields=["team", "name", "version"], name="policy_version_is_taken_once"),
            models.CheckConstraint(condition=models.Q(quorum__gte=1), name="policy_needs_somebody"),
        ]

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}"

    @property
    def rows(self) -> dict[str, str]:
        """Return the version's digest by the name of its row, as its event records it."""
        named = {"people": sorted(self.person_ids)} if self.person_ids else {}
        teams = sorted(self.reviewer_ids) or [self.team_id]  # as older events have it where people alone are named
        return {f"policy:{self.pk}": digest_row(self, COVERED, reviewers=teams, **named)}

    @property
    def proven(self) -> bool:
        """Tell whether a process with the key wrote this version, whole."""
        return are_proven(self.rows)

    def record(self, kind: str, *, by: Actor) -> None:
        """Write the event that holds this version, in the caller's transaction."""
        event_log.record(
            kind, subject=f"policy:{self.pk}", by=by, team_id=self.team_id, version=self.version,
            data={**self.facts, ROWS: self.rows},
        )  # fmt: skip

    @property
    def facts(self) -> dict[str, Any]:
        """Return the version's settings, for its event; times in seconds. Empty `groups`: the team's own people."""
        groups = sorted(self.groups.values_list("name", flat=True))
        said = {name: getattr(self, name) for name in ("name", "version", *SETTINGS)}
        seconds = {name: int(each.total_seconds()) for name, each in said.items() if isinstance(each, timedelta)}
        return {**said, **seconds, "groups": groups, "people": [f"user:{each}" for each in self.person_ids]}

    @cached_property
    def reviewers(self) -> list[Group]:
        """List the groups whose members may decide. A version's groups never change."""
        return sorted((each.team for each in self.reviewing.all()), key=lambda team: team.name)

    @cached_property
    def person_ids(self) -> list[int]:
        """List the ids of the people who are named. A version's never change; set by readers like `reviewer_ids`."""
        return self._reach[1]

    @cached_property
    def named(self) -> list[User]:
        """List the people who are named."""
        return list(self.people.order_by("first_name", "username")) if self.person_ids else []

    @property
    def plain(self) -> bool:
        """Tell whether it asks one number of people out of its groups, whatever is proposed."""
        return not (self.stages or self.rules or self.person_ids)

    @cached_property
    def reviewer_ids(self) -> list[int]:
        """List the ids of `reviewers`. A reader that has them from its own statement sets them here."""
        return self._reach[0]

    @cached_property
    def _reach(self) -> tuple[list[int], list[int]]:
        [(teams, people)] = run_sql(_REACH, [self.pk])
        return teams, people


class _WithTeams(models.Manager["ReviewingTeam"]):
    def get_queryset(self) -> models.QuerySet[ReviewingTeam]:
        return super().get_queryset().select_related("team")


@prepared_statement
def _newest(team: Any, name: Any) -> models.QuerySet[Policy]:
    reviewing = ReviewingTeam.objects.filter(policy=models.OuterRef("pk")).order_by("team__name")
    found: models.QuerySet[Any] = Policy.objects.filter(team=team, name=name).order_by("-version")[:1]
    known: models.QuerySet[Policy] = found.annotate(
        reviewer_ids=ArraySubquery(reviewing.values("team")),
        person_ids=ArraySubquery(people_named(models.OuterRef("pk"))),
    )
    return known


def people_named(policy: Any) -> models.QuerySet[Any, Any]:
    """Return the ids of the people whom a policy names, in order, as a query within another."""
    return Policy.people.through.objects.filter(policy=policy).order_by("user").values("user")


class ReviewingTeam(models.Model):
    """A row of a database view: people of this team with the permission to decide gates decide under this policy.

    The teams are the groups that the policy names; where it names no people either, the policy's own team.
    """

    pk = models.CompositePrimaryKey("policy_id", "team_id")
    policy = models.ForeignKey(Policy, on_delete=models.DO_NOTHING, related_name="reviewing")
    team = models.ForeignKey(Group, on_delete=models.DO_NOTHING, related_name="+")

    objects = _WithTeams()

    class Meta:
        managed = False
        db_table = "approvals_reviewing"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.team} under {self.policy}"
