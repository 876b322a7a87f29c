# One command runs everything, one tests everything. `make help` lists them all.
SHELL := /bin/bash
VENV ?= .venv
PYTHON ?= python3
PY := $(VENV)/bin/python
INSTALL := $(PYTHON) config/local/install.py $(VENV)
# Agent frameworks have an environment of their own: a package of one is called `agents`, as an app here is.
FRAMEWORKS := holdpoint/(openai_agents|pydantic_ai)/
SPACE := $(subst ,, )
PROGRAMS := ../../tests/clients/openai_agents/programs ../../tests/clients/pydantic_ai/programs
INSTALL_FRAMEWORKS := $(PYTHON) config/local/install.py .venv-frameworks requirements-frameworks.txt
# Every file of a release has its hash, whatever Python, system and processor it is for.
PIN := $(VENV)/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make pins"
# Checks read the settings and touch no server. They look at what belongs to Holdpoint, not at agents that lie beside it.
CHECK_ENV := HOLDPOINT_SECRET_KEY=no-secret-at-all-0123456789-abcdefghij DATABASE_URL=postgres://check@/check REDIS_URL=redis://127.0.0.1:1/0
OURS := agents approvals benchmarks checkpoints clients config docs tests conftest.py manage.py
# Tests that share a server stay side by side on one worker, until another has nothing left to do. Three on two cores: they
# often wait for processes to start, to be missed or to come back.
IN_PARALLEL := -n 3 --dist worksteal --durations=20

.PHONY: help run reset trial test test-long chaos mutants check types generated pins bench screenshots browser node frameworks
help: ## list these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 13

run: ## run the whole product here; AGENTS=my_agent serves yours too, and reloads it
	@$(INSTALL) requirements-local.txt && exec $(PY) -m config.local run $(AGENTS)

reset: ## wipe what `make run` keeps under HOLDPOINT_HOME
	@$(INSTALL) requirements-local.txt && exec $(PY) -m config.local reset

trial: ## run the tests of agents of yours, on a database of their own: TESTS=test_my_agent.py
	@$(INSTALL) requirements-local.txt
	@exec $(PY) -m config.local.trials $(or $(TESTS),$(wildcard test_*.py))

test: browser node frameworks ## test each behaviour once, on real servers, processes and a real browser
	@time $(PY) -m pytest $(IN_PARALLEL) $(ARGS)

test-long: browser node frameworks ## test its variations too: each pool, crash, hostile text, look and client, many more examples
	@exec $(PY) -m pytest $(IN_PARALLEL) -m long $(ARGS)

chaos: ## break a whole installation at random, and check it: MINUTES=10 SEED=7
	@$(INSTALL) requirements-dev.txt
	@exec $(PY) -m tests.chaos --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(ARGS)

mutants: browser node frameworks ## plant what tests caught by itself, and fail where it escapes now: ARGS="3 17"
	@exec $(PY) -m tests.mutations plant $(ARGS)

check: node ## style, types, import layers, migrations in step, names, the ceiling of code lines
	@$(INSTALL) requirements-dev.txt
	@$(PY) -m ruff check $(OURS)
	@$(PY) -m ruff format --check $(OURS)
	@$(CHECK_ENV) $(PY) -m mypy $(OURS)
	@$(PY) -m mypy --config-file clients/python/pyproject.toml --exclude '$(FRAMEWORKS)' clients/python/src clients/python/examples
	@$(INSTALL_FRAMEWORKS)
	@cd clients/python && MYPYPATH=$(subst $(SPACE),:,$(PROGRAMS)) ../../$(PY) -m mypy --config-file pyproject.toml --explicit-package-bases \
		--python-executable ../../.venv-frameworks/bin/python src/holdpoint/openai_agents src/holdpoint/pydantic_ai $(PROGRAMS)
	@$(CHECK_ENV) $(PY) -m tests.clients.typescript.node check
	@$(VENV)/bin/lint-imports
	@$(PY) -m tests.house.code_lines
	@$(PY) -m tests.house.names
	@$(CHECK_ENV) DJANGO_SETTINGS_MODULE=config.settings_of_make_check $(PY) manage.py makemigrations --check --dry-run

types: node ## write the TypeScript client's types from the API's description
	@$(CHECK_ENV) $(PY) -m tests.clients.typescript.node types

generated: ## write what docs have from the code that declares it
	@$(INSTALL) requirements-dev.txt
	@$(PY) -m docs.settings_page
	@$(CHECK_ENV) $(PY) -m docs.generated_pages

pins: ## write requirements*.txt from pyproject.toml; ARGS=--upgrade takes the newest of what that does not pin
	@$(INSTALL) requirements-dev.txt
	@$(PIN) $(ARGS) pyproject.toml -o requirements.txt
	@$(PIN) $(ARGS) pyproject.toml --group examples -c requirements.txt -o requirements-examples.txt
	@$(PIN) $(ARGS) pyproject.toml --group local -c requirements-examples.txt -o requirements-local.txt
	@$(PIN) $(ARGS) pyproject.toml --group dev -c requirements-local.txt -o requirements-dev.txt
	@$(PIN) $(ARGS) --group frameworks -o requirements-frameworks.txt

bench: browser ## print the figures, with this machine's floor from the same run
	@$(PY) -m benchmarks $(ARGS)

screenshots: browser ## take pictures of the pages into .screenshots and look for faults, on a stack of their own
	@exec $(PY) -m docs.pictures

frameworks:
	@$(INSTALL_FRAMEWORKS)

browser:
	@$(INSTALL) requirements-dev.txt
	@$(PY) -m tests.harness.chromium

node:
	@$(INSTALL) requirements-dev.txt
	@$(PY) -m tests.clients.typescript.node
