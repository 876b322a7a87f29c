"""A person's rows beside Django's account: their choices, and the sessions in which they are signed in.

Django's own table has a session's key and its signed content, and no column by which one person's could be found. A row
of SignedIn stands beside one there, under the same digest of the key; whoever ends a session deletes both.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import models
from django.db.models.functions import Now


class Profile(models.Model):
    """The choices of one person. Without a row, or where a choice is empty, the browser's own hold."""

    class Theme(models.TextChoices):
        SYSTEM = "", "As the device"
        LIGHT = "light", "Light"
        DARK = "dark", "Dark"

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="profile")
    zone = models.CharField(max_length=64, blank=True, default="", db_default="")  # of the IANA database
    theme = models.CharField(max_length=5, choices=Theme.choices, blank=True, default="", db_default="")
    hotkeys = models.BooleanField(default=True, db_default=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"the profile of {self.user}"


class SignedInQuerySet(models.QuerySet["SignedIn"]):
    """Queries of signed-in sessions."""

    def of(self, user: User) -> SignedInQuerySet:
        """Select one person's, the one used last first."""
        return self.filter(user=user).order_by("-seen_at", "-pk")

    def open(self) -> SignedInQuerySet:
        """Select those whose session is there, and not expired."""
        return self.filter(_session())

    def outlived(self) -> SignedInQuerySet:
        """Select those whose session is no more: expired and cleared, or signed out."""
        return self.filter(~_session())


def _session() -> models.Exists:
    return models.Exists(Session.objects.filter(session_key=models.OuterRef("session_key"), expire_date__gt=Now()))


class SignedIn(models.Model):
    """One session of one person: since when, from where, and when it was last used."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="signed_in")
    session_key = models.CharField(max_length=40, unique=True)  # the digest under which the session is stored
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    address = models.CharField(max_length=60, blank=True, default="", db_default="")
    browser = models.CharField(max_length=300, blank=True, default="", db_default="")  # as its User-Agent says
    pushed_to = models.BigIntegerField(null=True)  # the ChannelAddress by which its browser takes pushed messages
    method = models.CharField(max_length=40, blank=True, default="", db_default="")  # see approvals.accounts.factors

    objects = SignedInQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.user} since {self.started_at}"
