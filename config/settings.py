"""All settings, from the environment; junk is refused at start, in plain words.

A name is in .env.example if a deployment may set it, else in a table of docs/operations.md.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from config import examples, logging
from config.environment import EnvironmentReader
from config.messages.schedule import scheduled
from config.sign_in import providers, shared_counts
from config.sign_in.library_settings import *  # noqa: F403 - the names that allauth reads
from config.web import csp

BASE_DIR = Path(__file__).resolve().parent.parent
env = EnvironmentReader(os.environ)

# Who and where
DEBUG = env.boolean("HOLDPOINT_DEBUG", False)
SECRET_KEY = env.key("HOLDPOINT_SECRET_KEY", required="it signs sessions; make one with `openssl rand -base64 48`")
SECRET_KEY_FALLBACKS = env.keys("HOLDPOINT_OLD_SECRET_KEYS")
HOME = Path(env.text("HOLDPOINT_HOME", str(BASE_DIR / ".holdpoint"))).resolve()
LOCAL_HOSTS = ["localhost", "127.0.0.1"]
ALLOWED_HOSTS = env.words("HOLDPOINT_ALLOWED_HOSTS", LOCAL_HOSTS)
PORT = env.whole("PORT", 8000, least=1, most=65535)
# Full origins, for cross-site checks of forms and of the live socket; the first one begins the links that are sent.
HOLDPOINT_ORIGINS = env.origins("HOLDPOINT_ORIGINS", [f"http://{host}:{PORT}" for host in LOCAL_HOSTS])
CSRF_TRUSTED_ORIGINS = HOLDPOINT_ORIGINS
# Off by itself only where nobody but this machine is served.
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
    "config.middleware.request_ids.middleware",
    "config.middleware.probed.middleware",
    "config.metrics.requests.middleware",
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.compression.CompressedPages",
    "config.middleware.content_policy.middleware",
    "config.middleware.nul.middleware",
    "config.middleware.told_redirects.middleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "approvals.authentication.PreparedAuthentication",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.middleware.wrong_methods.middleware",
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
# Attempts to connect begin anew after `reconnect_timeout` seconds, since the pauses between them double.
POOL = {
    "min_size": 1,
    "max_size": env.whole("HOLDPOINT_POOL_SIZE", 20, least=1, most=1000),
    "timeout": 10,
    "reconnect_timeout": 5,
}
STATEMENT_TIMEOUT = env.number("HOLDPOINT_STATEMENT_TIMEOUT", 30.0)
TRANSACTION_TIMEOUT = env.number("HOLDPOINT_TRANSACTION_TIMEOUT", 60.0)
BOUNDS = {
    "statement_timeout": STATEMENT_TIMEOUT,
    "idle_in_transaction_session_timeout": STATEMENT_TIMEOUT,
    "transaction_timeout": TRANSACTION_TIMEOUT,
}
# Queues are indexes that are read from their beginning, on disks that do not turn: at the server's defaults the planner
# would rather read and sort all that a team has. What is asked for is small, and would only wait for a compiler.
PLANNER = {"random_page_cost": "1.1", "jit": "off"}
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
# The role that the migration grants the application's rights to.
HOLDPOINT_DB_APP_ROLE = env.text("HOLDPOINT_DB_APP_ROLE", "holdpoint_app")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Redis: doorbells. The channel layer lives in each web process, which reads events from PostgreSQL itself.
REDIS_URL = env.url("REDIS_URL", ("redis", "rediss", "unix"), required="`make run` starts a server and sets it")
CHANNEL_LAYERS = {"default": {"BACKEND": "approvals.live.channel_layer.PageLayer"}}
CACHES = {"default": shared_counts.in_redis(REDIS_URL)}

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
CELERY_BEAT_SCHEDULE = scheduled(prune_hour=env.whole("HOLDPOINT_PRUNE_HOUR", 2, least=0, most=24))
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

# How long a confirmation of who one is counts for deciding, where a policy asks for it, in minutes.
HOLDPOINT_STEP_UP_MINUTES = env.number("HOLDPOINT_STEP_UP_MINUTES", 15.0, least=0.01, most=24 * 60)
ACCOUNT_REAUTHENTICATION_TIMEOUT = HOLDPOINT_STEP_UP_MINUTES * 60

# Who must have a second factor: nobody, or staff, those who may decide and staff, everybody.
HOLDPOINT_MFA_REQUIRED = env.choice("HOLDPOINT_MFA_REQUIRED", "", ("", "staff", "deciders", "everybody"))

# Single sign-on by OpenID Connect.
HOLDPOINT_OIDC = providers.read(env)
SOCIALACCOUNT_PROVIDERS = providers.as_settings(HOLDPOINT_OIDC)

# Seconds after an approval by which something that it lets run has begun, or people are told that nothing has.
HOLDPOINT_NOT_RUN_AFTER = env.number("HOLDPOINT_NOT_RUN_AFTER", 240.0, least=5, most=7 * 24 * 3600)
# How long a claim of a gate lasts after its holder last had the page in sight, in minutes.
HOLDPOINT_CLAIM_MINUTES = env.number("HOLDPOINT_CLAIM_MINUTES", 10.0, least=1, most=24 * 60)

# After so many approvals of one person, half of them faster than so many seconds, the next needs a second look.
HOLDPOINT_STREAK = env.whole("HOLDPOINT_STREAK", 10, least=2, most=1000)
HOLDPOINT_STREAK_SECONDS = env.number("HOLDPOINT_STREAK_SECONDS", 5.0, most=3600)

# Security headers, beside those that Django sends by itself
CONTENT_SECURITY_POLICY = csp.policy(https=HTTPS)
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
    env.choice("HOLDPOINT_LOG_FORMAT", "text" if DEBUG else "json", ("json", "text")),
    env.choice("HOLDPOINT_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")),
)

# Who may read /metrics: by a bearer token, or from these networks; where neither is set, this machine alone.
HOLDPOINT_METRICS_TOKEN = env.key("HOLDPOINT_METRICS_TOKEN")
HOLDPOINT_METRICS_NETWORKS = env.networks("HOLDPOINT_METRICS_NETWORKS")

# E-mail: into files, until a server is named.
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
DEFAULT_FROM_EMAIL = env.text("HOLDPOINT_MAIL_FROM", "holdpoint@localhost")

# A run's lease: how long a worker that went silent keeps others waiting, in seconds.
HOLDPOINT_LEASE = env.number("HOLDPOINT_LEASE", 10.0, least=0.1, most=3600)
# How long one worker may go on with one run before others get a turn, in seconds.
HOLDPOINT_TIME_SLICE = env.number("HOLDPOINT_TIME_SLICE", 10.0, least=0.0, most=3600)
# The largest state, in bytes of canonical JSON.
HOLDPOINT_STATE_LIMIT = env.whole("HOLDPOINT_STATE_LIMIT", 16 * 1024 * 1024, least=1024)
# The largest body that the API takes, in bytes: room for the largest state and what comes with it.
HOLDPOINT_API_BODY_LIMIT = env.whole(
    "HOLDPOINT_API_BODY_LIMIT", HOLDPOINT_STATE_LIMIT + 1024 * 1024, least=1024, most=1024**3
)
# Seconds until a request is whole, its body included; a body that keeps coming gets more (config/web/wire.py).
HOLDPOINT_REQUEST_TIMEOUT = env.number("HOLDPOINT_REQUEST_TIMEOUT", 30.0, least=0.1, most=3600)
# Seconds that a call of an MCP tool waits for people, below the clients' own limits: Claude Code's is 30.
HOLDPOINT_MCP_WAIT = env.number("HOLDPOINT_MCP_WAIT", 25.0, least=0.1, most=3600)
# How many requests a minute the API takes of one person or token, and how many tokens that open nothing of one address.
HOLDPOINT_API_RATE = env.whole("HOLDPOINT_API_RATE", 30_000, least=1)
HOLDPOINT_API_FAILURES = env.whole("HOLDPOINT_API_FAILURES", 60, least=1)
# The largest file that a reviewer may put into an edit, in bytes.
HOLDPOINT_UPLOAD_LIMIT = env.whole("HOLDPOINT_UPLOAD_LIMIT", 25 * 1024 * 1024, least=1)
# How much the files may take, in bytes, that one person uploaded and that a gate or a run may still need.
HOLDPOINT_UPLOAD_QUOTA = env.whole("HOLDPOINT_UPLOAD_QUOTA", 500 * 1024 * 1024, least=1)
# Dotted names of the modules in which agents are declared; by default the examples whose libraries are installed.
HOLDPOINT_AGENTS = env.words("HOLDPOINT_AGENTS", examples.AGENTS)
# While agents are being written: code that changed under runs of its version is served, and those runs wait.
HOLDPOINT_DEVELOPMENT = env.boolean("HOLDPOINT_DEVELOPMENT", False)
# A key for the audit's seals and the proofs of its events; without one seals are plain SHA-256. Those before it.
HOLDPOINT_SEAL_KEY = env.key("HOLDPOINT_SEAL_KEY")
HOLDPOINT_OLD_SEAL_KEYS = env.keys("HOLDPOINT_OLD_SEAL_KEYS")
# Web Push: the key by which push services know this installation, and their hosts. Slack: a bot's token, and its API.
HOLDPOINT_VAPID_KEY = env.vapid_key("HOLDPOINT_VAPID_KEY")
HOLDPOINT_PUSH_SERVICES = env.words(
    "HOLDPOINT_PUSH_SERVICES",
    ["fcm.googleapis.com", "push.services.mozilla.com", "push.apple.com", "notify.windows.com"],
)
HOLDPOINT_SLACK_TOKEN = env.text("HOLDPOINT_SLACK_TOKEN")
HOLDPOINT_SLACK_API = env.url("HOLDPOINT_SLACK_API", ("https", "http"), "https://slack.com/api/")
# Webhooks: seconds that one message may take, seconds between its tries, how long they are kept and may all fail.
HOLDPOINT_WEBHOOKS_TIMEOUT = env.number("HOLDPOINT_WEBHOOKS_TIMEOUT", 15.0, least=0.1, most=120)
HOLDPOINT_WEBHOOKS_RETRIES = env.numbers(
    "HOLDPOINT_WEBHOOKS_RETRIES", [5, 30, 300, 1800, 3600, 7200, 14400, 21600, 36000]
)
HOLDPOINT_WEBHOOKS_KEEP_DAYS = env.number("HOLDPOINT_WEBHOOKS_KEEP_DAYS", 30.0, least=1, most=3660)
HOLDPOINT_WEBHOOKS_FAILING_DAYS = env.number("HOLDPOINT_WEBHOOKS_FAILING_DAYS", 5.0, least=0.1, most=3660)
# Networks beside the public internet that they may go to, there without https too; more certificates to trust.
HOLDPOINT_WEBHOOKS_PRIVATE = env.networks("HOLDPOINT_WEBHOOKS_PRIVATE")
HOLDPOINT_WEBHOOKS_CA = env.file("HOLDPOINT_WEBHOOKS_CA")
# Messages to people: seconds that one may take, between its tries, connections of one channel, days they are kept.
HOLDPOINT_NOTICES_TIMEOUT = env.number("HOLDPOINT_NOTICES_TIMEOUT", 15.0, least=0.1, most=60)
HOLDPOINT_NOTICES_RETRIES = env.numbers("HOLDPOINT_NOTICES_RETRIES", [10, 60, 300, 900, 3600, 7200, 14400])
HOLDPOINT_NOTICES_CONNECTIONS = env.whole("HOLDPOINT_NOTICES_CONNECTIONS", 4, least=1, most=50)
HOLDPOINT_NOTICES_KEEP_DAYS = env.number("HOLDPOINT_NOTICES_KEEP_DAYS", 90.0, least=1, most=3660)
# The example agent's outside world: the payment sandbox, and the orders that it looks up.
SANDBOX_URL = env.url("SANDBOX_URL", ("http", "https"), "http://127.0.0.1:8001")
HOLDPOINT_REFUNDS_ORDERS = env.text("HOLDPOINT_REFUNDS_ORDERS")
# The assistant: the model's endpoint, the folder it works in, and how far it may go by itself.
OPENAI_BASE_URL = env.url("OPENAI_BASE_URL", ("http", "https"), "https://api.openai.com/v1")
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
HOLDPOINT_ASSISTANT_MODEL = env.text("HOLDPOINT_ASSISTANT_MODEL", "gpt-5-mini")
HOLDPOINT_ASSISTANT_FOLDER = env.text("HOLDPOINT_ASSISTANT_FOLDER", str(HOME / "assistant"))
HOLDPOINT_ASSISTANT_CONTEXT = env.whole("HOLDPOINT_ASSISTANT_CONTEXT", 64_000, least=1_000)
HOLDPOINT_ASSISTANT_HOSTS = env.words("HOLDPOINT_ASSISTANT_HOSTS")
HOLDPOINT_ASSISTANT_NETWORKS = env.networks("HOLDPOINT_ASSISTANT_NETWORKS")
HOLDPOINT_ASSISTANT_PRICE_IN = env.number("HOLDPOINT_ASSISTANT_PRICE_IN", 0.0)
HOLDPOINT_ASSISTANT_PRICE_OUT = env.number("HOLDPOINT_ASSISTANT_PRICE_OUT", 0.0)
# What worker, sweeper and beat touch while they work, for a health check.
HOLDPOINT_HEARTBEAT = env.text("HOLDPOINT_HEARTBEAT")
# Tests turn a named point of the runner into a crash; never set otherwise.
HOLDPOINT_CRASH = env.text("HOLDPOINT_CRASH")
# Read by `make run` and the migration, not by Django: the owner's role, and the password of the first accounts.
env.url("DATABASE_OWNER_URL", ("postgres", "postgresql"))
env.text("HOLDPOINT_DEMO_PASSWORD")
# Read by config.web: whose X-Forwarded- headers are believed.
env.proxies("FORWARDED_ALLOW_IPS")

env.refuse_junk()
