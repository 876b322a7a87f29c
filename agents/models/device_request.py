"""Device requests: a program without a browser asks for a person's token by a short code (RFC 8628)."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from .token import TokenScope


class DeviceRequest(models.Model):
    """One program's request. The person confirms it in the browser, and then the program collects its token, once."""

    # pending -> confirmed | refused; confirmed -> used. Expiry is no status: it follows from the time.
    class Status(models.TextChoices):
        PENDING = "pending", _("waits for a person")
        CONFIRMED = "confirmed", _("confirmed, and not collected yet")
        REFUSED = "refused", _("refused")
        USED = "used", _("its token was collected")

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
