# Springtide. `make help` lists what can be made.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto

.DEFAULT_GOAL := help
.PHONY: help run test check format crds bench soak e2e clean

help: ## Show this help
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 16

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Springtide needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(VENV)/.bench-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	@touch $@

run: $(VENV)/.installed ## Simulate an example over four virtual days (the embedded cluster is not built yet)
	@echo "The embedded cluster does not exist yet: this is a simulated one, in virtual time."
	@echo "It runs 'springtide simulate examples/simulated-shop.yaml'; try '$(BIN)/springtide --help' next."
	@echo
	@$(BIN)/springtide simulate examples/simulated-shop.yaml --from 2026-12-23 --for 4d

test: $(VENV)/.installed ## Run all tests that need no network and no Go (minutes)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not soak"

check: $(VENV)/.installed ## Lint, check types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed ## Format the code and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

crds: $(VENV)/.installed ## Write the CRDs of the chart anew from the types
	$(BIN)/springtide crds --into charts/springtide/crds

bench: $(VENV)/.bench-installed ## Measure side by side with the alternatives, in one run
	$(BIN)/python -m bench

soak: $(VENV)/.installed ## Run the long tests: fuzzed manifests, random schedules, a thousand worlds under faults
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n $(WORKERS) -m "soak or not soak"

e2e: ## Run end-to-end tests on a real control plane (there are none yet)
	@echo "There are no end-to-end tests yet: nothing talks to a cluster so far."

clean: ## Remove what make has made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
