"""A policy: who must agree, how many, until when, and what happens then."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models.functions import Now
from django.utils.functional import cached_property

from approvals.errors import NoSuchPolicy

DEFAULT = "default"


class PolicyQuerySet(models.QuerySet["Policy"]):
    """Questions about policies."""

    def named(self, name: str, *, team: Group, strict: bool = True) -> Policy:
        """The newest version of the team's policy of that name, else of its default.

        A team that has no default yet gets one: a single member of the team, not the one who started the run. A team
        that has named others is not taken to mean that by a name which it has not: `strict` raises NoSuchPolicy.
        """
        newest = self.filter(team=team, name=name or DEFAULT).order_by("-version").first()
        if newest is not None:
            return newest
        others = self.filter(team=team).exclude(name=DEFAULT).order_by("name").values_list("name", flat=True).distinct()
        if strict and name not in ("", DEFAULT) and others:
            raise NoSuchPolicy(name, team.name, list(others))
        default = self.filter(team=team, name=DEFAULT).order_by("-version").first()
        return default or self.get_or_create(team=team, name=DEFAULT, version=1)[0]

    def newest(self, policy: Policy) -> Policy:
        """The newest version of the same policy."""
        return self.filter(team=policy.team_id, name=policy.name).latest("version")

    def next_version(self, name: str, *, team: Group) -> int:
        """The number after the newest version of the team's policy of that name."""
        newest = self.filter(team=team, name=name).aggregate(newest=models.Max("version"))["newest"]
        return (newest or 0) + 1

    def current(self) -> PolicyQuerySet:
        """The newest version of each."""
        return self.order_by("team", "name", "-version").distinct("team", "name")


class Policy(models.Model):
    """One version of a policy. A change is a new version; a gate keeps the one it was opened under."""

    class OnExpiry(models.TextChoices):
        EXPIRE = "expire", "Expire: nothing runs, the agent is told that nobody answered in time"
        APPROVE = "approve", "Approve when nobody answered in time"

    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="policies")
    name = models.SlugField(max_length=60)
    version = models.PositiveIntegerField(default=1)
    groups = models.ManyToManyField(Group, blank=True, related_name="+")  # empty: the team's own people
    quorum = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1)])
    separation = models.BooleanField(default=True)  # whoever started the run, or answers for what asks, may not approve
    deadline = models.DurationField(null=True, blank=True)
    on_expiry = models.CharField(max_length=8, choices=OnExpiry.choices, default=OnExpiry.EXPIRE)
    whole_state = models.BooleanField(
        "the whole state may be edited",
        default=False,
        db_default=False,
        help_text="Whoever decides may change the run's whole saved state as JSON, and not only the values that the "
        "gate asks about. The agent's own rules still check it, and others have to agree anew. Where each of several "
        "actions is decided by itself, only the API takes such an edit.",
    )
    reason_required = models.BooleanField(
        "a rejection needs a reason",
        default=True,
        db_default=True,
        help_text="Whoever rejects must say why. The agent reads it where the run is sent back; the record keeps it.",
    )
    step_up = models.BooleanField(
        "the password again",
        default=False,
        db_default=False,
        help_text="Whoever decides must have given their password again lately, in the session in which they decide. A "
        "token cannot decide then.",
    )
    registered_only = models.BooleanField(
        "registered tools only",
        default=False,
        db_default=False,
        help_text="Every action must name a tool that people registered for the team, and fit it. What a program "
        "elsewhere asks otherwise is refused; an agent of this server is held, and people are asked how to go on.",
    )
    withdraw_after = models.DurationField(
        "withdraw when unheard of for",
        null=True,
        blank=True,
        help_text="Of an agent that lives outside: the gate is withdrawn when its program is not heard of for so long, "
        "unless it said that it goes away meanwhile. “00:10:00” is ten minutes. Empty: the gate stays.",
    )
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

    @cached_property
    def reviewers(self) -> list[Group]:
        """The groups whose members may decide. A version's groups never change."""
        return sorted(self.groups.all(), key=lambda group: group.name) or [self.team]

    @cached_property
    def reviewer_ids(self) -> list[int]:
        """Their ids. A reader that has them from its own statement puts them here."""
        return list(self.groups.order_by("name").values_list("pk", flat=True)) or [self.team_id]
