"""The teams that were added to one gate's reviewers, and the person or team that is asked to act.

Also here: times in which somebody is away, and who decides for them meanwhile.

The rule is in views of the database: `approvals_lent` has the teams in which a delegate may decide for somebody, now,
and `approvals_lending` for whom they do. By these the function `approvals_gate_access` says what that is at a gate; two
more views have the policies and the added teams that follow, for queues and for what is visible.
A delegate gets what the person may do in their own name, never what others lent to them: no chain can form.
Nothing is lent to somebody who is in no team of the person any more.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class AddedTeam(models.Model):
    """A team that was added to one gate's reviewers, by an escalation or a person. It stays one of them."""

    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="added", db_index=False)
    team = models.ForeignKey(Group, on_delete=models.PROTECT, related_name="+")
    level = models.PositiveSmallIntegerField(null=True)  # of the escalation; null: a person added it
    by = models.CharField(max_length=120)
    at = models.DateTimeField(db_default=Now())
    open = models.BooleanField(default=True, db_default=True)  # as the gate is, so that queues find the few open ones

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gate", "team"], name="team_is_added_once")]
        indexes = [models.Index("team", "gate", name="added_open", condition=Q(open=True))]

    def __str__(self) -> str:
        return f"{self.team} at gate {self.gate_id}"


class Assignee(models.Model):
    """The person or team, of those who may decide, that is asked to act. It gives no rights, and takes none."""

    gate = models.OneToOneField("approvals.Gate", on_delete=models.CASCADE, related_name="assignee", primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    team = models.ForeignKey(Group, null=True, on_delete=models.CASCADE, related_name="+")
    by = models.CharField(max_length=120)
    by_name = models.CharField(max_length=150, default="")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None, team__isnull=False) | Q(user__isnull=False, team=None),
                name="assignee_is_a_person_or_a_team",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user or self.team} at gate {self.gate_id}"


class DelegationQuerySet(models.QuerySet["Delegation"]):
    """Queries of delegations."""

    def standing(self) -> DelegationQuerySet:
        """Select those that have not ended: that are so now, or will be."""
        return self.filter(ended_at=None, ends_at__gt=Now())

    def now(self) -> DelegationQuerySet:
        """Select those that are so now, by the database's clock."""
        return self.standing().filter(starts_at__lte=Now())


class Delegation(models.Model):
    """A time in which a person is away, with or without somebody who decides for them.

    Written by approvals.assignments.away alone.
    """

    # planned -> so -> over, by the clock; ended_at cuts it short
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="delegations", db_index=False
    )
    delegate = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    teams = ArrayField(models.IntegerField(), default=list, db_default=[])  # ids of the gates' teams; none: all
    policies = ArrayField(models.SlugField(max_length=60), default=list, db_default=[])  # their names; none: all
    made_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    objects = DelegationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(ends_at__gt=F("starts_at")), name="delegation_ends_after_it_starts"),
            models.CheckConstraint(
                condition=Q(delegate=None) | ~Q(delegate=F("person")), name="delegate_is_somebody_else"
            ),
        ]
        indexes = [models.Index("person", "ends_at", name="delegation_of_person")]

    def __str__(self) -> str:
        return f"user {self.person_id} away until {self.ends_at:%Y-%m-%d %H:%M}"


class Lent(models.Model):
    """A row of a view: the delegate may decide now what the person might."""

    delegate = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.DO_NOTHING, related_name="+")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.DO_NOTHING, related_name="+")

    class Meta:
        abstract = True
        managed = False
        default_permissions = ()


class LentPolicy(Lent):
    """Lends under one policy."""

    pk = models.CompositePrimaryKey("policy_id", "delegate_id", "person_id")
    policy = models.ForeignKey("approvals.Policy", on_delete=models.DO_NOTHING, related_name="lent")

    def __str__(self) -> str:
        return f"{self.policy}, by user {self.delegate_id} for user {self.person_id}"


class LentTeam(Lent):
    """Lends at the gate to which this team was added."""

    pk = models.CompositePrimaryKey("added_id", "delegate_id", "person_id")
    added = models.ForeignKey("approvals.AddedTeam", on_delete=models.DO_NOTHING, related_name="lent")

    def __str__(self) -> str:
        return f"{self.added}, by user {self.delegate_id} for user {self.person_id}"
