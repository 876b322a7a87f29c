"""Django's settings with the migrations of a release that is still to come."""

from config.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "tests.rolling_updates.later"]  # noqa: F405
