# One command runs everything, one tests everything. `make help` lists them all.
SHELL := /bin/bash
VENV ?= .venv
PYTHON ?= python3
PY := $(VENV)/bin/python
INSTALL := $(PYTHON) config/local/install.py $(VENV)
# Checks read the settings and touch no server.
CHECK_ENV := HOLDPOINT_SECRET_KEY=check DATABASE_URL=postgres://check@/check REDIS_URL=redis://127.0.0.1:1/0

.PHONY: help run reset test test-long check bench screenshots browser
help: ## list these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 13

run: ## run the whole product here (PORT, HOLDPOINT_HOME; DATABASE_URL and REDIS_URL for servers of your own)
	@$(INSTALL) requirements.txt && exec $(PY) -m config.local run

reset: ## wipe what `make run` keeps under HOLDPOINT_HOME
	@$(INSTALL) requirements.txt && exec $(PY) -m config.local reset

test: browser ## test everything, on real servers, processes and a real browser
	@exec $(PY) -m pytest -n 2 $(ARGS)

test-long: browser ## test exhaustively: every hostile string in every place, every hostile body
	@exec $(PY) -m pytest -n 2 -m long $(ARGS)

check: ## style, types, import layers, migrations in step
	@$(INSTALL) requirements-dev.txt
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(CHECK_ENV) $(PY) -m mypy .
	@$(PY) -m mypy --config-file clients/python/pyproject.toml clients/python/src clients/python/examples
	@$(VENV)/bin/lint-imports
	@$(CHECK_ENV) $(PY) -W ignore manage.py makemigrations --check --dry-run

bench: ## print the figures, with this machine's floor from the same run
	@$(INSTALL) requirements-dev.txt
	@$(PY) -m benchmarks

screenshots: browser ## take the pictures in docs/screenshots and look for faults, on a stack of their own
	@exec $(PY) -m docs.pictures

browser:
	@$(INSTALL) requirements-dev.txt
	@$(PY) -m tests.harness.chromium
