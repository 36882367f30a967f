# Every target does its own set-up: a .venv in this folder, made anew when pyproject.toml changes.

SHELL := /bin/sh
BIN := .venv/bin
KEY := $(shell cat pyproject.toml .ci/setup | sha256sum | cut -c1-12)
RUN := .venv/.run-$(KEY)
DEV := .venv/.dev-$(KEY)

SOURCES := server tools prompts
CHECKED := $(SOURCES) $(wildcard tests benchmarks)
JOBS ?= 2
PYTEST := $(BIN)/pytest -n $(JOBS) --dist worksteal -rs

# pyright comes whole from wheels: the version that pyproject.toml names, and node from its own package.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
unexport PYRIGHT_PYTHON_FORCE_VERSION PYRIGHT_PYTHON_PYLANCE_VERSION
# A checker must not read settings or packages of the user who calls it.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV MYPYPATH

.PHONY: help demo test quick weekly lint fmt types layers coverage bench docs clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

demo: $(RUN) ## the main job against a simulated cloud, in under a minute
	@.ci/demo

test: $(DEV) lint ## lint, types, layers and every test
	$(PYTEST) -m "not weekly"

quick: $(DEV) ## the tests that are quick, in under a minute
	$(PYTEST) -m "not slow and not weekly"

weekly: $(DEV) ## the tests that are too slow for every run
	$(PYTEST) -m weekly --timeout 3600

lint: $(DEV) types layers ## ruff, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(DEV) ## mypy and pyright, both strict
	$(BIN)/mypy $(CHECKED)
	$(BIN)/pyright

layers: $(DEV) ## import-linter
	$(BIN)/lint-imports --no-logo

fmt: $(DEV) ## format, and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

coverage: $(DEV) ## branch coverage of the tests, subprocesses included
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m "not weekly"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

bench: $(DEV) ## speed, as ratios; never part of a test
	@set -e; for script in $(wildcard benchmarks/*.py); do echo "# $$script"; $(BIN)/python $$script; done

docs: $(DEV) ## write the pages that are made from the program
	$(BIN)/python -m tests.house.reference

clean: ## remove everything that make has made
	rm -rf .venv .demo dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.* htmlcov
	find server tools prompts tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(RUN):
	@.ci/setup gcp
	@touch $@

$(DEV):
	@.ci/setup dev
	@touch $@ $(RUN)
