"""API tokens: a program sends one instead of signing in. Only its digest is kept; requests for one too.

Also here: registrations of external agents' plans by team: a team uses only plans that its own programs have
registered.

An agent's name is no secret and gives no authority: a token's owner in another team may register any plan under it.

Also here: answers kept under an idempotency key: the same request again gets the same answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Now

from checkpoints import actors
from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.models import Plan
from checkpoints.postgresql.sql import run_sql


class TokenScope(models.TextChoices):
    """The permitted uses of a token. A token never has more rights than its owner."""

    READ = "runs:read", "Read runs, checkpoints, agents and events"
    START = "runs:start", "Start runs, and register external agents"
    WORK = "runs:work", "Work on external runs: save checkpoints, open gates, report effects"
    SIGNAL = "runs:signal", "Send signals to runs"
    ORDER = "runs:order", "Rewind, edit, fork, settle and cancel runs"
    SEE = "gates:read", "Read gates and what decisions would do"
    DECIDE = "gates:decide", "Decide gates as the person whose token it is"
    HOOKS = "webhooks:manage", "Manage webhooks and read their deliveries"


# The scopes of agents' tokens: none of them decides gates, or moves runs as only people may.
FOR_AGENTS = (TokenScope.READ, TokenScope.START, TokenScope.WORK, TokenScope.SIGNAL, TokenScope.SEE)
FOR_PEOPLE = (TokenScope.ORDER, TokenScope.DECIDE, TokenScope.HOOKS)


class TokenState(models.TextChoices):
    """The state of a token: valid or why not. It is not stored, but follows from the time and its owner's account."""

    VALID = "valid", "valid"
    EXPIRED = "expired", "expired"
    REVOKED = "revoked", "revoked"
    SWITCHED_OFF = "switched_off", "its owner's account is switched off"


class TokenQuerySet(models.QuerySet["Token"]):
    """Queries about tokens."""

    def valid(self) -> TokenQuerySet:
        """Return the valid tokens, by the database's clock."""
        return self.filter(revoked_at__isnull=True, expires_at__gt=Now(), user__is_active=True)

    def with_state(self) -> TokenQuerySet:
        """Return each token with its `state`, by the database's clock."""
        state = Case(
            When(revoked_at__isnull=False, then=Value(TokenState.REVOKED)),
            When(expires_at__lte=Now(), then=Value(TokenState.EXPIRED)),
            When(user__is_active=False, then=Value(TokenState.SWITCHED_OFF)),
            default=Value(TokenState.VALID),
            output_field=models.CharField(),
        )
        return self.annotate(state=state)


class Token(models.Model):
    """A personal token, or an agent's; `user` is its owner either way."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="tokens", db_index=False)
    agent = models.CharField(max_length=100, default="", blank=True)  # empty: the person's own
    team = models.ForeignKey(Group, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    policy = models.CharField(max_length=60, default="", db_default="", blank=True)  # an agent's: its gates' only one
    name = models.CharField(max_length=100)  # what it is for
    scopes = ArrayField(models.CharField(max_length=20, choices=TokenScope.choices))
    digest = models.BinaryField(unique=True)  # SHA-256 of the token, which is random enough to need no salt
    hint = models.CharField(max_length=12)  # its first characters, to tell one from another
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=120, default="", blank=True)  # an actor

    objects = TokenQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(agent="") | ~Q(scopes__overlap=[str(each) for each in FOR_PEOPLE]),
                name="token_of_an_agent_never_decides",
            ),
            models.CheckConstraint(
                condition=Q(agent="") | Q(team__isnull=False), name="token_of_an_agent_is_of_one_team"
            ),
            models.CheckConstraint(condition=Q(policy="") | ~Q(agent=""), name="token_with_a_policy_is_an_agents"),
            models.CheckConstraint(condition=Q(expires_at__gt=F("created_at")), name="token_expires_later"),
        ]
        indexes = [models.Index(fields=["user", "-id"], name="token_of_user")]

    def __str__(self) -> str:
        return f"{self.hint}… {self.name}"

    @property
    def uses(self) -> list[str]:
        """Return the labels of its scopes."""
        return [str(scope.label) for scope in TokenScope if scope in self.scopes]

    @property
    def subject(self) -> str:
        """Return its name in events."""
        return f"token:{self.pk}"

    @property
    def actor(self) -> Actor:
        """Return the actor of requests with it: the agent, else its owner."""
        return actors.of_agent(self.agent) if self.agent else actors.of_user(self.user)

    def allows(self, scope: str) -> bool:
        """Tell whether it has this scope."""
        return scope in self.scopes


class DeviceRequest(models.Model):
    """A program's request for a person's token by a short code (RFC 8628).

    The person confirms it in the browser, and then the program collects its token, once.
    """

    # pending -> confirmed | refused; confirmed -> used. Expiry is no status: it follows from the time.
    class Status(models.TextChoices):
        PENDING = "pending", "waits for a person"
        CONFIRMED = "confirmed", "confirmed, and not collected yet"
        REFUSED = "refused", "refused"
        USED = "used", "its token was collected"

    device_digest = models.BinaryField(unique=True)  # of the code that the program keeps
    user_digest = models.BinaryField(unique=True)  # keyed, of the code that the person compares: it is short
    program = models.CharField(max_length=60)  # this and the next are what the program says of itself
    machine = models.CharField(max_length=100)
    address = models.CharField(max_length=60)  # from which it asked
    scopes = ArrayField(models.CharField(max_length=20, choices=TokenScope.choices))
    lasts = models.DurationField()  # of the token
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.PENDING)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="+")
    interval = models.DurationField()  # the shortest time between two polls
    polled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(condition=Q(expires_at__gt=F("created_at")), name="device_request_expires_later"),
            models.CheckConstraint(
                condition=Q(status__in=["pending", "refused"]) | Q(user__isnull=False),
                name="device_request_is_confirmed_by_somebody",
            ),
        ]
        indexes = [models.Index(fields=["expires_at"], name="device_request_expired")]

    def __str__(self) -> str:
        return f"{self.program} on {self.machine}"

    @property
    def subject(self) -> str:
        """Return its name in events."""
        return f"device:{self.pk}"

    @property
    def uses(self) -> list[str]:
        """Return the labels of its scopes."""
        return [str(scope.label) for scope in TokenScope if scope in self.scopes]


def digest_of(token: str) -> bytes:
    """Return the digest of a token, which is all that is kept of it."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


_SAY = """
INSERT INTO agents_registration (plan_id, team_id, at) SELECT $1, unnest($2::int[]), statement_timestamp()
ON CONFLICT (plan_id, team_id) DO UPDATE SET at = excluded.at RETURNING team_id, xmax = 0
"""


class RegistrationQuerySet(models.QuerySet["Registration"]):
    """Queries and updates of registrations."""

    def say(self, plan: Plan, *, teams: Collection[int], by: Actor) -> None:
        """Register the plan for its version in these teams; record an event for each team where it is new."""
        data = {"agent": plan.agent, "version": plan.version, "digest": bytes(plan.digest).hex()}
        for team, new in run_sql(_SAY, [plan.pk, sorted(teams)]):
            if new:
                event_log.record("plan.registered", subject=f"plan:{plan.pk}", team_id=team, by=by, data=data)

    def plan_of(self, agent: str, version: str, *, team: Group) -> Plan | None:
        """Return the team's plan for a version, or for its newest if none is named; None where it has none.

        The newest version is the one whose first registration is latest: processes register theirs again at each start.
        """
        known = self.filter(plan__agent=agent, team=team).select_related("plan")
        if not version:
            newest = known.order_by("-pk").first()
            if newest is None:
                return None
            version = newest.plan.version
        said = known.filter(plan__version=version).order_by("-at", "-pk").first()
        return None if said is None else said.plan


class Registration(models.Model):
    """One plan, registered for one team."""

    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="+", db_index=False)
    team = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField(db_default=Now())  # when it was last registered

    objects = RegistrationQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["plan", "team"], name="plan_is_registered_once_a_team")]

    def __str__(self) -> str:
        return f"{self.plan} of {self.team}"


class AnswerQuerySet(models.QuerySet["Answer"]):
    """Queries of answers."""

    def outlived(self, kept: timedelta) -> AnswerQuerySet:
        """Select those older than `kept`, but for what opened a gate or started a run: that stays, so its key holds.

        Whoever sends such a request again after months would otherwise be asked, or have it done, a second time.
        """
        return self.filter(at__lt=Now() - kept).exclude(location__regex=r"^/api/(gates|runs)/[0-9]+$")


class Answer(models.Model):
    """One request with an idempotency key and its answer; `status` is 0 until it was answered."""

    who = models.CharField(max_length=40)  # "token:5", "user:7"; an agent's tokens share their keys
    key = models.CharField(max_length=200)
    request = models.BinaryField()  # SHA-256 of the method, the address and the body
    binds = models.BinaryField(null=True)  # the same without what a repeat may word otherwise; null: nothing is such
    status = models.SmallIntegerField(default=0)
    body = models.BinaryField(default=b"")
    media_type = models.CharField(max_length=60, default="", blank=True)
    location = models.CharField(max_length=200, default="", blank=True)
    at = models.DateTimeField(db_default=Now())

    objects = AnswerQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["who", "key"], name="key_is_used_once")]
        indexes = [models.Index("at", name="answer_by_age")]

    def __str__(self) -> str:
        return f"{self.key} of {self.who}"
