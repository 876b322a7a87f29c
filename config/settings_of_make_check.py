"""The settings of `make check`, which looks at the code and touches no server: a database that cannot be reached."""

from config.settings import *  # noqa: F403

DATABASES = {"default": {"ENGINE": "django.db.backends.dummy"}}
