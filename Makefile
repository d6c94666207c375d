# Springtide. `make help` lists what can be made.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto
CONSTRAINTS ?= constraints.txt
SEED ?= 1
COUNT ?= 200
# The Python of the image, and where it is on this machine; empty if it is not installed.
IMAGE_VERSION := $(shell sed -nE 's/^ARG BASE=python:([0-9]+\.[0-9]+).*/\1/p' Containerfile)
IMAGE_PYTHON ?= $(shell for each in python$(IMAGE_VERSION) "$$HOME"/.pyenv/versions/$(IMAGE_VERSION).*/bin/python; do \
	"$$each" -c 'import venv' 2>/dev/null && command -v "$$each" && break; done)
# pip tells what it collects and installs, one package to a line; only what is there already is left out.
PIP_INSTALL := $(BIN)/python -m pip install --progress-bar off --disable-pip-version-check --constraint $(CONSTRAINTS) --editable

.DEFAULT_GOAL := help
.PHONY: help run test test-exhaustive test-image test-bounds check format crds chart requirements audit mutants bench bench-peers soak e2e e2e-long clean

help: ## Show this help
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 24

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Springtide needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@echo "installing Springtide and its tools into $(VENV): the first run takes a minute"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) '.[dev]'
	@echo "installed"
	@touch $@

$(VENV)/.bench-installed: $(VENV)/.installed
	@$(PIP_INSTALL) '.[dev,bench]'
	@touch $@

run: $(VENV)/.installed ## Run the embedded cluster with all controllers and the examples; Ctrl-C ends it
	@# With job control, Ctrl-C in a terminal reaches the cluster and not make, which would call it an error.
	@if [ -t 0 ]; then set -m; fi; $(BIN)/springtide up examples/*.yaml $(if $(KUBECONFIG_FILE),--kubeconfig $(KUBECONFIG_FILE)) $(UP_FLAGS)

test: $(VENV)/.installed ## Run the tests that need no network and no Go, with a sample of the exhaustive ones (minutes)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not soak and not e2e and not exhaustive"

test-exhaustive: $(VENV)/.installed ## Run all tests of the API server, of conformance, and of what long inputs cost
	$(BIN)/python -m pytest -n $(WORKERS) -m "not soak and not e2e" tests/apiserver tests/conformance tests/costs

test-image: ## Run `make test` on the Python of the image, where it is installed (IMAGE_PYTHON=...)
	@if [ -z "$(IMAGE_PYTHON)" ]; then echo "There is no Python $(IMAGE_VERSION) here, which the image has: install it, or name it with IMAGE_PYTHON=..."; exit 1; fi
	@echo "testing on $(IMAGE_PYTHON)"
	@$(MAKE) test PYTHON=$(IMAGE_PYTHON) VENV=$(VENV)/python$(IMAGE_VERSION)

test-bounds: $(VENV)/.installed ## Run `make test` on the oldest versions that pyproject.toml allows
	@$(BIN)/python tools/requirements.py --lower-bounds > $(VENV)/lower-bounds.txt
	@$(MAKE) test VENV=$(VENV)/lower-bounds CONSTRAINTS=$(VENV)/lower-bounds.txt

check: $(VENV)/.installed ## Lint, check types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed ## Format the code and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

crds: $(VENV)/.installed ## Write the CRDs of the chart anew from the types
	$(BIN)/springtide crds --into charts/springtide/files/crds

chart: $(VENV)/.installed ## Write the chart's CRDs, roles and webhooks anew from the types and what controllers declare
	$(BIN)/python tools/chart.py

requirements: $(VENV)/.installed ## Write requirements/ anew: pinned versions with hashes, which the image installs
	$(BIN)/python tools/requirements.py

audit: $(VENV)/.installed ## Ask for known advisories of the pinned versions and of the lower bounds, where the network allows
	@test -x $(VENV)/audit/bin/pip-audit || { $(PYTHON) -m venv $(VENV)/audit && $(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit; }
	$(BIN)/python tools/requirements.py --lower-bounds > $(VENV)/audit/lower-bounds.txt
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --no-deps --requirement constraints.txt
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --no-deps --requirement $(VENV)/audit/lower-bounds.txt

mutants: $(VENV)/.installed ## Change the code at 200 random places and list the changes that no test notices (SEED=, COUNT=, FLAGS=)
	$(BIN)/python -m tools.mutants --seed $(SEED) --count $(COUNT) $(FLAGS)

bench: $(VENV)/.bench-installed ## Measure side by side with the alternatives, in one run
	$(BIN)/python -m bench

bench-peers: $(VENV)/.bench-installed ## Measure the packer beside Karpenter in one run, where Go is present
	$(BIN)/python -m bench.peers

soak: $(VENV)/.installed ## Run the long tests: fuzzed manifests, random schedules, a thousand worlds under faults
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n $(WORKERS) -m "not e2e"

e2e: $(VENV)/.installed ## Run the same controllers and the conformance suite on a real control plane, built with Go 1.26 or newer
	$(BIN)/python -m pytest -m e2e -rs tests/e2e tests/conformance

e2e-long: $(VENV)/.installed ## Bind the plans of 500 random clusters on a real kube-scheduler (`make e2e` has 120)
	SPRINGTIDE_E2E_CLUSTERS=500 $(BIN)/python -m pytest -m e2e -rs tests/e2e/test_plans_on_scheduler.py

clean: ## Remove what make has made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
