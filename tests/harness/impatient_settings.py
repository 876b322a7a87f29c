"""Django's settings with a pool of connections whose callers give up soon, for tests of what follows then."""

from config.settings import *  # noqa: F403

POOL["timeout"] = 2  # noqa: F405
