"""All settings, from the environment; junk is refused at start, in plain words.

A comment that begins with `#:` is for whoever runs Holdpoint: `make generated` writes docs/settings.md and .env.example
from them. It stands above the call that reads the variable. `## …` in it begins a section or goes on with one;
`Example: …` is the value in .env.example, where that is not the default.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery.schedules import crontab

from agents.ringing.ring_pauses import EXPIRES
from config import examples, logging
from config.environment import EnvironmentReader
from config.sign_in import providers

BASE_DIR = Path(__file__).resolve().parent.parent
env = EnvironmentReader(os.environ)

#: ## Only for `make run`, the examples and the tests
#: 1: error pages show code and settings.
DEBUG = env.boolean("HOLDPOINT_DEBUG", False)
#: ## Who and where
#: Signs sessions, and derives the secrets of webhooks and chat channels: `openssl rand -base64 48`.
#: Example: change-me-to-the-output-of-openssl-rand-base64-48
SECRET_KEY = env.key("HOLDPOINT_SECRET_KEY", required="it signs sessions; make one with `openssl rand -base64 48`")
#: Earlier keys, as long as sessions and webhooks of their time are valid.
SECRET_KEY_FALLBACKS = env.keys("HOLDPOINT_OLD_SECRET_KEYS")
#: What the embedded servers keep, artifacts, mail as files, the job shop's board, beat's memory. Default: `.holdpoint`.
#: Where web and workers run on several machines, they share its folders `artifacts` and `shop-floor`.
HOME = Path(env.text("HOLDPOINT_HOME", str(BASE_DIR / ".holdpoint"))).resolve()
LOCAL_HOSTS = ["localhost", "127.0.0.1"]
#: Names of this server. Any but localhost and 127.0.0.1 turns HOLDPOINT_HTTPS on. Default: those two.
#: Example: localhost,127.0.0.1
ALLOWED_HOSTS = env.words("HOLDPOINT_ALLOWED_HOSTS", LOCAL_HOSTS)
#: The port of `make run` and of the published web service.
PORT = env.whole("PORT", 8000, least=1, most=65535)
#: Full origins, for cross-site checks of forms and of the live socket; the first one begins the links that are sent.
#: Default: this machine, at PORT.
#: Example: http://localhost:8000,http://127.0.0.1:8000
HOLDPOINT_ORIGINS = env.origins("HOLDPOINT_ORIGINS", [f"http://{host}:{PORT}" for host in LOCAL_HOSTS])
CSRF_TRUSTED_ORIGINS = HOLDPOINT_ORIGINS
#: 1: secure cookies, redirect to https, HSTS. A proxy that ends TLS must send X-Forwarded-Proto. Default: 1 unless
#: HOLDPOINT_ALLOWED_HOSTS names this machine alone.
HTTPS = env.boolean("HOLDPOINT_HTTPS", not set(ALLOWED_HOSTS) <= set(LOCAL_HOSTS))
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20_000  # of one form: a gate with several long actions has thousands

INSTALLED_APPS = [
    "config.apps.AdministrationConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "checkpoints",
    "approvals",
    "agents",
]
MIDDLEWARE = [
    "config.middleware.give_request_id",
    "config.middleware.replace_probes_host",
    "config.metrics.count_requests",
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.CompressedPages",
    "config.middleware.add_content_policy",
    "config.web.refusals.refuse_nul",
    "config.middleware.tell_redirect",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "approvals.sessions.PreparedAuthentication",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.web.refusals.explain_wrong_method",
    "approvals.accounts.required.middleware",
    "approvals.accounts.sign_ins.middleware",
    "approvals.live.page_frame.middleware",
    "approvals.time_zones.middleware",
    "approvals.presentation.text.size_limit.middleware",
]
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    ["config.web.template_loader.Loader", "django.template.loaders.app_directories.Loader"],
                ),
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# PostgreSQL: psycopg's own pool, because persistent connections under ASGI would each belong to a thread that
# is gone; bounds on every statement and transaction, because an open one holds back every reader of events.
# Attempts to connect begin anew after `reconnect_timeout` seconds, since the pauses between them double. A process that
# computes one answer at a time gains nothing from many, and each plans every statement anew: with twenty, fifty pages
# that asked at once waited twice as long as with eight.
POOL = {
    "min_size": 1,
    #: ## Servers
    #: Connections to PostgreSQL per process, at most.
    "max_size": env.whole("HOLDPOINT_POOL_SIZE", 8, least=1, most=1000),
    "timeout": 10,
    "reconnect_timeout": 5,
}
#: Seconds that a statement, and an idle transaction, may take; 0: no bound.
STATEMENT_TIMEOUT = env.number("HOLDPOINT_STATEMENT_TIMEOUT", 30.0)
#: Seconds that a transaction may take, with PostgreSQL 17 or later; an open one holds back every reader of events.
TRANSACTION_TIMEOUT = env.number("HOLDPOINT_TRANSACTION_TIMEOUT", 60.0)
BOUNDS = {
    "statement_timeout": STATEMENT_TIMEOUT,
    "idle_in_transaction_session_timeout": STATEMENT_TIMEOUT,
    "transaction_timeout": TRANSACTION_TIMEOUT,
}
# Queues are indexes that are read from their beginning, on disks that do not turn: at the server's defaults the planner
# would rather read and sort all that a team has. What is asked for is small, and would only wait for a compiler.
PLANNER = {"random_page_cost": "1.1", "jit": "off"}
#: The application's role, which owns nothing; PostgreSQL 15 or later, directly or through a pooler in session mode.
#: `make run` starts a server where this is empty. Write passwords in letters and digits: `openssl rand -hex 24`.
#: Example: postgres://holdpoint_app:change-me@postgres/holdpoint
DATABASES = {"default": env.database("DATABASE_URL", required="`make run` starts a server and sets it")}
DATABASES["default"] |= {
    "CONN_HEALTH_CHECKS": True,
    "OPTIONS": DATABASES["default"]["OPTIONS"]
    | {
        "pool": POOL,
        "prepare_threshold": 5,
        "connect_timeout": 5,
        # A server whose host vanished sends nothing: give up after twenty-five seconds, not the kernel's two hours.
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 20_000,
        "application_name": "holdpoint",
        "session": {name: str(int(bound * 1000)) for name, bound in BOUNDS.items()} | PLANNER,
    },
}
#: The role to which `manage.py migrate` grants the application's rights; `config.migrate` takes that of DATABASE_URL.
HOLDPOINT_DB_APP_ROLE = env.text("HOLDPOINT_DB_APP_ROLE", "holdpoint_app")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Redis: doorbells. The channel layer lives in each web process, which reads events from PostgreSQL itself.
#: Redis 6.2 or later. That of docker compose takes its password from here, and does not start without one.
#: Example: redis://:change-me-as-well@redis:6379/0
REDIS_URL = env.url("REDIS_URL", ("redis", "rediss", "unix"), required="`make run` starts a server and sets it")
CHANNEL_LAYERS = {"default": {"BACKEND": "approvals.live.channel_layer.PageLayer"}}
# The counts of tries of passwords and codes.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "holdpoint",
        "OPTIONS": {
            "serializer": "config.sign_in.attempts.JsonSerializer",
            "socket_connect_timeout": 2,
            "socket_timeout": 2,
        },
    }
}

# Celery
CELERY_BROKER_URL = env.broker(REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A message is spent when a worker takes it: the sweeper rings again for what is due. Kept in Redis until it was
    # dealt with, one whose acknowledgement met a dead Redis counted as in hand for ever, and the worker took no more.
    "ack_emulation": False,
    "health_check_interval": 10,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
}
# Tasks a worker runs before Celery closes its database connections. Without it Celery closes the whole pool around
# every task, and connecting costs more than a step does; broken connections are noticed and replaced all the same.
CELERY_DB_REUSE_MAX = 1_000_000_000
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "holdpoint"
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1}
# A worker takes a message when one of its processes is free for it, and leaves the others to other workers.
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = True
CELERY_WORKER_ENABLE_PREFETCH_COUNT_REDUCTION = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
#: ## The audit and what is kept
#: The hour (UTC) at which checkpoints are pruned by the retention policies; 24: only when somebody orders it.
PRUNE_HOUR = env.whole("HOLDPOINT_PRUNE_HOUR", 2, least=0, most=24)
CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    "canary": {"task": "config.housekeeping.sing", "schedule": 5.0, "options": {"expires": EXPIRES}},
    "clear sessions": {"task": "config.housekeeping.clear_sessions", "schedule": crontab(hour="3", minute="17")},
    "clear drafts": {"task": "config.housekeeping.clear_drafts", "schedule": crontab(hour="3", minute="37")},
    "clear messages": {"task": "config.housekeeping.clear_messages", "schedule": crontab(hour="3", minute="47")},
    "clear answers": {"task": "config.housekeeping.clear_answers", "schedule": crontab(hour="3", minute="57")},
    # One that was killed goes on after these seconds.
    "go on pruning": {"task": "checkpoints.prune", "schedule": 30.0, "options": {"expires": EXPIRES}},
}
if PRUNE_HOUR < 24:
    nightly = crontab(hour=str(PRUNE_HOUR), minute="23")
    CELERY_BEAT_SCHEDULE["prune"] = {"task": "checkpoints.prune_nightly", "schedule": nightly}
CELERY_BEAT_SCHEDULE_FILENAME = str(HOME / "beat-schedule")

# People
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
] + [{"NAME": "config.sign_in.attempts.PasswordTold"}]
SESSION_ENGINE = "approvals.sessions"
SESSION_COOKIE_AGE = 12 * 60 * 60
PASSWORD_RESET_TIMEOUT = 60 * 60

#: ## People
#: Minutes for which a confirmation of who one is counts for deciding, where a policy asks for it.
HOLDPOINT_STEP_UP_MINUTES = env.number("HOLDPOINT_STEP_UP_MINUTES", 15.0, least=0.01, most=24 * 60)
ACCOUNT_REAUTHENTICATION_TIMEOUT = HOLDPOINT_STEP_UP_MINUTES * 60

#: Who must sign in with a second factor: `staff`, `deciders` (and staff), `everybody`. Empty: nobody has to.
HOLDPOINT_MFA_REQUIRED = env.choice("HOLDPOINT_MFA_REQUIRED", "", ("", "staff", "deciders", "everybody"))

# What allauth does at sign-in; only single sign-on depends on the installation.
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "config.sign_in.accounts.Adapter"
# The adapter counts wrong passwords at sign-in; the library's other limits hold, for a password asked again among them.
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None}
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # a mail to an address that no account has
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_REDIRECT_URL = "/accounts/login/"
# allauth's own would keep addresses in rows beside the account's, and go on sending links to one that was replaced.
ACCOUNT_PASSWORD_RESET_TOKEN_GENERATOR = "approvals.accounts.sign_ins.LinkKeys"  # noqa: S105
# Second factors: passkeys sign in alone and always know their owner; recovery codes are shown once.
MFA_ADAPTER = "config.sign_in.factors.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_USER_VERIFICATION = "required"
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = True  # the forms compare the full origin with HOLDPOINT_ORIGINS instead
MFA_ALLOW_UNVERIFIED_EMAIL = True  # addresses are given by administrators
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_TOTP_TOLERANCE = 1
MFA_RATE_LIMITS = {"webauthn_login": "60/m/ip"}
MFA_FORMS = {
    "authenticate": "config.sign_in.factors.CodeForm",
    "reauthenticate": "config.sign_in.factors.ConfirmByCodeForm",
    "activate_totp": "config.sign_in.factors.ActivateForm",
    "add_webauthn": "config.sign_in.factors.AddPasskeyForm",
    "authenticate_webauthn": "config.sign_in.factors.PasskeyForm",
    "login_webauthn": "config.sign_in.factors.SignInByPasskeyForm",
    "reauthenticate_webauthn": "config.sign_in.factors.ConfirmByPasskeyForm",
}
# Single sign-on by OpenID Connect.
HOLDPOINT_OIDC = providers.read_providers(env)
SOCIALACCOUNT_ADAPTER = "config.sign_in.openid.SocialAdapter"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False  # the adapter links by its own, stricter rule
SOCIALACCOUNT_PROVIDERS = providers.as_settings(HOLDPOINT_OIDC)

#: ## People
#: Seconds after an approval by which something that it lets run has begun, or people are told that nothing has.
HOLDPOINT_NOT_RUN_AFTER = env.number("HOLDPOINT_NOT_RUN_AFTER", 240.0, least=5, most=7 * 24 * 3600)
#: Minutes for which a claim of a gate lasts after its holder last had the page in sight.
HOLDPOINT_CLAIM_MINUTES = env.number("HOLDPOINT_CLAIM_MINUTES", 10.0, least=1, most=24 * 60)
#: After so many approvals of one person, half of them too fast, the next one needs a second look.
HOLDPOINT_STREAK = env.whole("HOLDPOINT_STREAK", 10, least=2, most=1000)
#: Fewer seconds than these after the one before: too fast.
HOLDPOINT_STREAK_SECONDS = env.number("HOLDPOINT_STREAK_SECONDS", 5.0, most=3600)

# Security headers, beside those that Django sends by itself
# A page may load, run and send to only what this site serves. It allows no inline script or style and no nonce: no text
# of an agent can become one, even where escaping failed.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    f"object-src 'none'{'; upgrade-insecure-requests' if HTTPS else ''}"
)
CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]  # asked for over plain HTTP, from inside
SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS

# Words, time, files
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
FORMAT_MODULE_PATH = ["config.formats"]
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
#: ## Who and where
#: Where static files are collected. Default: `static` in HOLDPOINT_HOME.
STATIC_ROOT = Path(env.text("HOLDPOINT_STATIC_ROOT", str(HOME / "static"))).resolve()
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(HOME / "files")}},
    # By their digest: writing the same name again writes the same content.
    "artifacts": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": str(HOME / "artifacts"),
            "allow_overwrite": True,
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    },
    "staticfiles": {"BACKEND": "config.web.static.Storage"},
}
LOGGING = logging.configuration(
    #: ## Logs and metrics
    #: How a line is written. Default: text with HOLDPOINT_DEBUG, else json.
    env.choice("HOLDPOINT_LOG_FORMAT", "text" if DEBUG else "json", ("json", "text")),
    #: The least level that is written.
    env.choice("HOLDPOINT_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")),
)

#: Clients that send this bearer token may read /metrics (`openssl rand -base64 48`). Where neither this nor the next
#: is set, only this machine may.
HOLDPOINT_METRICS_TOKEN = env.key("HOLDPOINT_METRICS_TOKEN")
#: Clients from these networks may read /metrics, too: 10.20.0.0/16.
HOLDPOINT_METRICS_NETWORKS = env.networks("HOLDPOINT_METRICS_NETWORKS")

#: ## Reaching people
#: The mail server: smtp://user:password@host:587 (STARTTLS) or smtps://…; `file:` writes into HOLDPOINT_HOME/mail.
MAIL = urlsplit(env.url("EMAIL_URL", ("smtp", "smtps", "file"), "file:"))
EMAIL_BACKEND = f"django.core.mail.backends.{'filebased' if MAIL.scheme == 'file' else 'smtp'}.EmailBackend"
EMAIL_FILE_PATH = str(HOME / "mail")
EMAIL_HOST = MAIL.hostname or "localhost"
EMAIL_PORT = MAIL.port or 587
EMAIL_HOST_USER = MAIL.username or ""
EMAIL_HOST_PASSWORD = MAIL.password or ""
EMAIL_USE_SSL = MAIL.scheme == "smtps"
EMAIL_USE_TLS = MAIL.scheme == "smtp" and bool(MAIL.username)
EMAIL_TIMEOUT = 20
#: The sender of e-mails.
DEFAULT_FROM_EMAIL = env.text("HOLDPOINT_MAIL_FROM", "holdpoint@localhost")

#: ## Agents, runs and the API
#: Seconds for which a worker that went silent keeps a run from others.
HOLDPOINT_LEASE = env.number("HOLDPOINT_LEASE", 10.0, least=0.1, most=3600)
#: Seconds for which a worker goes on with one run before others get a turn.
HOLDPOINT_TIME_SLICE = env.number("HOLDPOINT_TIME_SLICE", 10.0, least=0.0, most=3600)
#: The largest state of a run, and the most that `once` or one `gather` keeps, in bytes of canonical JSON.
HOLDPOINT_STATE_LIMIT = env.whole("HOLDPOINT_STATE_LIMIT", 16 * 1024 * 1024, least=1024)
#: The largest body that the API takes, in bytes. Default: HOLDPOINT_STATE_LIMIT and one mebibyte.
HOLDPOINT_API_BODY_LIMIT = env.whole(
    "HOLDPOINT_API_BODY_LIMIT", HOLDPOINT_STATE_LIMIT + 1024 * 1024, least=1024, most=1024**3
)
#: Seconds until a request is complete, its body included; one second more for each 16 KB received.
HOLDPOINT_REQUEST_TIMEOUT = env.number("HOLDPOINT_REQUEST_TIMEOUT", 30.0, least=0.1, most=3600)
#: Seconds that a call of an MCP tool waits for people, below the clients' own limits: Claude Code's is 30.
HOLDPOINT_MCP_WAIT = env.number("HOLDPOINT_MCP_WAIT", 25.0, least=0.1, most=3600)
#: Requests a minute that the API takes of one person, or of one token.
HOLDPOINT_API_RATE = env.whole("HOLDPOINT_API_RATE", 30_000, least=1)
#: Invalid tokens from one address in a minute, before unknown tokens from there are refused, for up to a minute. Behind
#: a proxy FORWARDED_ALLOW_IPS has to name it, or all clients have one address.
HOLDPOINT_API_FAILURES = env.whole("HOLDPOINT_API_FAILURES", 60, least=1)
#: The largest file that a reviewer may put into an edit, in bytes.
HOLDPOINT_UPLOAD_LIMIT = env.whole("HOLDPOINT_UPLOAD_LIMIT", 25 * 1024 * 1024, least=1)
#: The total size, in bytes, of one person's uploaded files that an open gate or a live run may need. A file counts as
#: 4 KB at least.
HOLDPOINT_UPLOAD_QUOTA = env.whole("HOLDPOINT_UPLOAD_QUOTA", 500 * 1024 * 1024, least=1)
#: Dotted names of the modules in which agents are declared. Default: the examples whose libraries are installed.
HOLDPOINT_AGENTS = env.words("HOLDPOINT_AGENTS", examples.AGENTS)
#: ## Only for `make run`, the examples and the tests
#: 1, as `make run AGENTS=…` sets it: if code changes while its version has runs, it is served at once, and those runs
#: wait to be cancelled or taken over.
HOLDPOINT_DEVELOPMENT = env.boolean("HOLDPOINT_DEVELOPMENT", False)
#: ## The audit and what is kept
#: The key of the audit's seals and of the proofs of its events (HMAC-SHA-256): `openssl rand -base64 48`. Without one
#: seals are plain SHA-256, and whoever can write the database can forge an approval.
HOLDPOINT_SEAL_KEY = env.key("HOLDPOINT_SEAL_KEY")
#: Earlier seal keys: proofs made with them stay valid.
HOLDPOINT_OLD_SEAL_KEYS = env.keys("HOLDPOINT_OLD_SEAL_KEYS")
#: ## Reaching people
#: The key by which browsers' push services know this installation: `python manage.py vapid` makes one. Empty: no Web
#: Push. Browsers that subscribed under another key must subscribe again.
HOLDPOINT_VAPID_KEY = env.vapid_key("HOLDPOINT_VAPID_KEY")
#: The hosts of the browsers' push services, with all below them: a browser of any other one is refused.
HOLDPOINT_PUSH_SERVICES = env.words(
    "HOLDPOINT_PUSH_SERVICES",
    ["fcm.googleapis.com", "push.services.mozilla.com", "push.apple.com", "notify.windows.com"],
)
#: The token of a Slack app's bot (xoxb-…), for messages to people and channels. Empty: only teams' incoming webhooks.
HOLDPOINT_SLACK_TOKEN = env.text("HOLDPOINT_SLACK_TOKEN")
#: Slack's API; GovSlack has another one.
HOLDPOINT_SLACK_API = env.url("HOLDPOINT_SLACK_API", ("https", "http"), "https://slack.com/api/")
#: ## Webhooks
#: Seconds that one message may take, with the answer.
HOLDPOINT_WEBHOOKS_TIMEOUT = env.number("HOLDPOINT_WEBHOOKS_TIMEOUT", 15.0, least=0.1, most=120)
#: Seconds between the tries of a message that did not arrive; after the last of them it has failed.
HOLDPOINT_WEBHOOKS_RETRIES = env.numbers(
    "HOLDPOINT_WEBHOOKS_RETRIES", [5, 30, 300, 1800, 3600, 7200, 14400, 21600, 36000]
)
#: Days for which messages and their attempts are kept.
HOLDPOINT_WEBHOOKS_KEEP_DAYS = env.number("HOLDPOINT_WEBHOOKS_KEEP_DAYS", 30.0, least=1, most=3660)
#: Days without a delivery after which a failing webhook is disabled.
HOLDPOINT_WEBHOOKS_FAILING_DAYS = env.number("HOLDPOINT_WEBHOOKS_FAILING_DAYS", 5.0, least=0.1, most=3660)
#: Private networks that webhooks may be sent to: 10.20.0.0/16. They may use http.
HOLDPOINT_WEBHOOKS_PRIVATE = env.networks("HOLDPOINT_WEBHOOKS_PRIVATE")
#: Further certificates (PEM) that are trusted for webhooks.
HOLDPOINT_WEBHOOKS_CA = env.file("HOLDPOINT_WEBHOOKS_CA")
#: ## Reaching people
#: Seconds that one message may take.
HOLDPOINT_NOTICES_TIMEOUT = env.number("HOLDPOINT_NOTICES_TIMEOUT", 15.0, least=0.1, most=60)
#: Seconds between the tries of a message that did not arrive; after the last of them it has failed.
HOLDPOINT_NOTICES_RETRIES = env.numbers("HOLDPOINT_NOTICES_RETRIES", [10, 60, 300, 900, 3600, 7200, 14400])
#: Connections by which one channel sends at the same time.
HOLDPOINT_NOTICES_CONNECTIONS = env.whole("HOLDPOINT_NOTICES_CONNECTIONS", 4, least=1, most=50)
#: Days for which messages are kept, in people's logs too.
HOLDPOINT_NOTICES_KEEP_DAYS = env.number("HOLDPOINT_NOTICES_KEEP_DAYS", 90.0, least=1, most=3660)
#: ## Only for `make run`, the examples and the tests
#: The examples' payment sandbox; docker compose names its service.
SANDBOX_URL = env.url("SANDBOX_URL", ("http", "https"), "http://127.0.0.1:8001")
#: A CSV of orders for `refunds`. Empty: the example's own.
HOLDPOINT_REFUNDS_ORDERS = env.text("HOLDPOINT_REFUNDS_ORDERS")
#: The `assistant`'s endpoint, any that speaks Chat Completions.
OPENAI_BASE_URL = env.url("OPENAI_BASE_URL", ("http", "https"), "https://api.openai.com/v1")
#: Its key.
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
#: The model's name there.
HOLDPOINT_ASSISTANT_MODEL = env.text("HOLDPOINT_ASSISTANT_MODEL", "gpt-5-mini")
#: The folder it works in, shared by workers on several machines. Default: `assistant` in HOLDPOINT_HOME.
HOLDPOINT_ASSISTANT_FOLDER = env.text("HOLDPOINT_ASSISTANT_FOLDER", str(HOME / "assistant"))
#: Tokens of the conversation, counted at four characters each, before its oldest turns are left out.
HOLDPOINT_ASSISTANT_CONTEXT = env.whole("HOLDPOINT_ASSISTANT_CONTEXT", 64_000, least=1_000)
#: Hosts that it may ask by GET without a gate, and send anything that the model has read.
HOLDPOINT_ASSISTANT_HOSTS = env.words("HOLDPOINT_ASSISTANT_HOSTS")
#: Private networks that it may ask with a gate's approval: 10.0.0.0/8.
HOLDPOINT_ASSISTANT_NETWORKS = env.networks("HOLDPOINT_ASSISTANT_NETWORKS")
#: US dollars for a million tokens that the model reads; without both prices no cost is shown.
HOLDPOINT_ASSISTANT_PRICE_IN = env.number("HOLDPOINT_ASSISTANT_PRICE_IN", 0.0)
#: US dollars for a million tokens that it writes.
HOLDPOINT_ASSISTANT_PRICE_OUT = env.number("HOLDPOINT_ASSISTANT_PRICE_OUT", 0.0)
#: ## Logs and metrics
#: A file that worker, sweeper or beat touches while it works, for a health check: a different one for each process.
HOLDPOINT_HEARTBEAT = env.text("HOLDPOINT_HEARTBEAT")
#: ## Only for `make run`, the examples and the tests
#: Tests only: a named point of the runner at which to crash.
HOLDPOINT_CRASH = env.text("HOLDPOINT_CRASH")
# Read elsewhere, and declared here.
#: The password of the first accounts of `make run`. Default: made once, printed at every start.
env.text("HOLDPOINT_DEMO_PASSWORD")
#: ## Servers
#: The role that owns the tables, for `make run` and the migration alone; best a direct connection.
#: Example: postgres://holdpoint_owner:change-me-too@postgres/holdpoint
env.url("DATABASE_OWNER_URL", ("postgres", "postgresql"))
#: docker compose only: the superuser of its PostgreSQL, which makes the two roles above.
env.text("POSTGRES_PASSWORD")
#: ## Who and where
#: Addresses of proxies whose X-Forwarded- headers the web server trusts. Empty: none, not even this machine.
env.proxies("FORWARDED_ALLOW_IPS")
#: ## Agents, runs and the API
#: docker compose only: what the image installs. `requirements-examples.txt`: the libraries of the examples, too.
env.text("IMAGE_REQUIREMENTS", "requirements.txt")

env.refuse_junk()
