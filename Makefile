# `make train` and `make test` work on a fresh machine: they build .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Two processes (engine, learner) share the cores: spinning OpenMP threads would starve each other.
export OMP_WAIT_POLICY ?= PASSIVE
export TOKENIZERS_PARALLELISM ?= false
export HF_HUB_DISABLE_TELEMETRY ?= 1

.PHONY: help setup train test test-fast check format bench constraints clean
.DEFAULT_GOAL := help

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(STAMP)

setup: $(STAMP)  ## build .venv with everything that training and the tests need

train: $(STAMP)  ## train the quickstart: async COPC on a tool-using task, minutes on a CPU
	$(BIN)/windage train quickstart

test: $(STAMP)  ## run the whole test suite
	$(BIN)/python -m pytest -q

test-fast: $(STAMP)  ## the tests that start no process
	$(BIN)/python -m pytest -q -m "not process"

check: $(STAMP)  ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

format: $(STAMP)  ## format and apply safe lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## run every benchmark; results go to bench/results/
	for file in bench/bench_*.py; do $(BIN)/python $$file || exit 1; done

constraints: $(STAMP)  ## rewrite constraints.txt from the current environment
	{ echo '# Versions that make `make` fast and repeatable. Regenerate with: make constraints'; \
	  $(BIN)/python -m pip freeze --exclude-editable | grep -viE '^(pip|wheel|setuptools)=' | sed 's/+cpu//; s/ @ file.*torch-\([0-9.]*\).*/==\1/'; } > constraints.txt.new
	mv constraints.txt.new constraints.txt

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
