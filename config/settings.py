"""All settings, from the environment. Every name is in .env.example; junk is refused at start."""

from __future__ import annotations

from pathlib import Path

import environ

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

DEBUG = env.bool("HOLDPOINT_DEBUG", False)
SECRET_KEY = env.str("HOLDPOINT_SECRET_KEY", "")
HOME = Path(env.str("HOLDPOINT_HOME", str(BASE_DIR / ".holdpoint"))).resolve()
ALLOWED_HOSTS = env.list("HOLDPOINT_ALLOWED_HOSTS", default=["localhost", "127.0.0.1"])
CSRF_TRUSTED_ORIGINS = env.list("HOLDPOINT_ORIGINS", default=[])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "allauth",
    "allauth.account",
    "checkpoints",
    "approvals",
    "agents",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
DATABASES = {"default": env.db("DATABASE_URL")}
DATABASES["default"] |= {
    "OPTIONS": DATABASES["default"].get("OPTIONS", {})
    | {"pool": {"min_size": 1, "max_size": 20, "timeout": 10}, "prepare_threshold": 5},
}
REDIS_URL = env.str("REDIS_URL")
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = HOME / "static"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]

# A run's lease: how long a worker that went silent keeps others waiting, in seconds.
HOLDPOINT_LEASE = env.float("HOLDPOINT_LEASE", 10.0)
# How long one worker may go on with one run before others get a turn, in seconds.
HOLDPOINT_TIME_SLICE = env.float("HOLDPOINT_TIME_SLICE", 10.0)
# The largest state, in bytes of canonical JSON.
HOLDPOINT_STATE_LIMIT = env.int("HOLDPOINT_STATE_LIMIT", 16 * 1024 * 1024)
# Dotted names of the modules in which agents are declared.
HOLDPOINT_AGENTS = env.list("HOLDPOINT_AGENTS", default=["agents.examples.refunds"])
# A key for the audit's seals; without one they are plain SHA-256.
HOLDPOINT_SEAL_KEY = env.str("HOLDPOINT_SEAL_KEY", "")
