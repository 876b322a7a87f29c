# The image of every service: web, worker, beat, sweeper, sandbox and the migration differ by their command.
FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
# requirements-examples.txt holds the libraries of the example agents, too.
ARG REQUIREMENTS=requirements.txt
COPY requirements.txt requirements-examples.txt ./
RUN python -m venv /venv && /venv/bin/pip install --require-hashes -r "$REQUIREMENTS"

FROM python:3.11-slim
# Each thread's heap of its own would keep what a large request took; two shared ones give it to the next.
ENV PATH=/venv/bin:$PATH MALLOC_ARENA_MAX=2 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=config.settings \
    HOLDPOINT_HOME=/var/lib/holdpoint HOLDPOINT_STATIC_ROOT=/srv/static
RUN useradd --system --uid 10001 --home-dir /nonexistent holdpoint \
    && install -d -o holdpoint -g holdpoint -m 0700 /var/lib/holdpoint
WORKDIR /app
COPY --from=build /venv /venv
COPY manage.py ./
COPY config config
COPY checkpoints checkpoints
COPY approvals approvals
COPY agents agents
COPY clients/python/src clients/python/src
COPY templates templates
COPY static static
# Collecting reads the settings and reaches no server; none of these values stays in the image.
RUN HOLDPOINT_SECRET_KEY=no-secret-at-all-0123456789-abcdefghij DATABASE_URL=postgres://build@/build REDIS_URL=redis://build/0 \
    python manage.py collectstatic --noinput -v0
USER holdpoint
EXPOSE 8000
CMD ["python", "-m", "config.web", "--host", "0.0.0.0", "--port", "8000"]
