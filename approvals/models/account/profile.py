"""A person's choices for every browser in which they sign in."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import models


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
