# Everything a developer or a newcomer calls; CI calls the same.
PYTHON ?= python3
PORT ?= 8000
VENV := .venv/bin
SETUP := $(PYTHON) .ci/setup_environment.py
LINTED := grid dashboard tests benchmarks manage.py

# The tests start hundreds of our processes, and each would compile all of the code again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run setup test check bench pictures texts audit advisories sbom mutants test-contract test-postgresql test-slow format lock

run: ## start everything on this machine
	@began=$$(date +%s) && $(SETUP) run && GRID_DEMO=1 exec $(VENV)/python manage.py up --port $(PORT) --began $$began

setup: ## the virtual environment with what the programs need
	@$(SETUP) run

test: ## all tests that take seconds, with the main pages in a browser when there is a Chromium
	@$(SETUP) dev
	@.ci/install-chromium
	@$(VENV)/pytest -m "not slow" -n 4 --dist loadfile $(ARGS)

test-postgresql: ## the tests that use the database, on a PostgreSQL server of their own
	@$(SETUP) dev
	@$(VENV)/python -m tests.support.postgresql $(VENV)/pytest -m "not slow" -n 4 --dist loadfile $(ARGS)

# Three at a time, for much of it is waiting; those on one real cluster come one after the other (`REAL` in tests/conftest.py).
# With RERUN=yes, as `.ci/run` says it, up to three that fail are tried once more, alone and at the end.
SLOWLY := $(if $(RERUN),$(VENV)/python -m tests.support.rerun,$(VENV)/pytest)

test-slow: ## the tests that need minutes
	@$(SETUP) dev
	@.ci/install-chromium
	@$(SLOWLY) -m slow -n 3 --dist loadfile $(ARGS)
	@$(if $(ARGS),,$(VENV)/pytest -m "hypothesis and not slow" --hypothesis-profile=many -n 3 --dist loadfile)

test-contract: ## the promises about a Kubernetes API, against any cluster: make test-contract KUBECONFIG=...
	@$(SETUP) dev
	@CONTRACT_KUBECONFIG="$(KUBECONFIG)" $(VENV)/pytest tests/contract $(ARGS)

check: ## style, types, import rules, the plan of the house, templates
	@$(SETUP) dev
	$(VENV)/ruff format --check $(LINTED)
	$(VENV)/ruff check $(LINTED)
	$(VENV)/mypy
	$(VENV)/lint-imports
	$(VENV)/python .ci/check_house.py
	$(VENV)/djlint templates --lint --quiet
	GRID_DEMO=1 $(VENV)/python manage.py makemigrations --check --dry-run

audit: sbom ## fail for a locked package with a known advisory; print what PyPI knows, where it is reached
	@$(VENV)/python -m tests.support.advisories ask
	@$(VENV)/python -m tests.support.advisories check

advisories: ## write .ci/advisories.json anew, from OSV or from a copy of PyPA's database: make advisories FROM=../advisory-database
	@$(SETUP) dev
	@$(VENV)/python -m tests.support.advisories update $(FROM)

sbom: ## which packages the product has in it, with versions and licences, as CycloneDX JSON in var/sbom.json
	@$(SETUP) dev
	@$(VENV)/python -m tests.support.sbom var/sbom.json

mutants: ## break the rules in thousands of small ways and see which the tests notice: make mutants WHAT=grid/queue/quota.py
	@$(SETUP) dev
	@$(VENV)/python -m tests.support.mutants $(WHAT)

format: ## put the code into its one form
	$(VENV)/ruff format $(LINTED)
	$(VENV)/ruff check --fix $(LINTED)

bench: ## measure; figures go into docs/performance.md
	@$(SETUP) dev
	@$(VENV)/python -m benchmarks.scale live

pictures: ## take the pictures of the guides in docs/, from a demo of its own
	@$(SETUP) dev
	@.ci/install-chromium
	@$(VENV)/python -m tests.pictures

texts: ## print every text of the product that a person may read, by file
	@$(SETUP) dev
	@$(VENV)/python -m tests.support.texts

COMPILE := $(VENV)/pip-compile --quiet --generate-hashes --strip-extras --no-emit-index-url --no-emit-find-links --no-emit-trusted-host
lock: ## resolve the dependencies of pyproject.toml again
	@echo 'uv>=0.13,<1' | $(COMPILE) -o requirements-uv.lock -
	$(COMPILE) -o requirements.lock pyproject.toml
	$(COMPILE) --extra otel -c requirements.lock -o requirements-otel.lock pyproject.toml
	$(COMPILE) --allow-unsafe --extra otel --extra dev -c requirements-otel.lock -c requirements-uv.lock -o requirements-dev.lock pyproject.toml
