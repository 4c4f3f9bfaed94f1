# Tidegate. `make demo` and `make test` set up by themselves what they need.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# The first interpreter that really runs and is new enough: the name alone may be a shim that points nowhere.
PYTHON3 ?= $(shell for name in python3.13 python3.12 python3.11 python3 python; do \
  $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$name; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Tests that start no processes: they share the cores, and give way to those that wait for something.
PURE := tests/unit tests/scenarios
# Systems as people start them: at the usual port and the first addresses of pods, which a machine has once.
USUAL := tests/documents/test_commands.py tests/system/test_demo.py
# Tests that own more of a machine (the images of Docker, the ports of a cluster), or measure what it does.
ALONE := tests/containers tests/serving tests/kubernetes/test_documents_on_kubernetes.py
# The others wait more than they compute: two files at a time. With TIDEGATE_LAB=all some need the machine for themselves.
BESIDE := $(if $(TIDEGATE_LAB),0,2)

.PHONY: help setup demo test test-pure test-processes test-kubernetes test-serving lint check proto bench bench-kubernetes docs clean

help: ## What there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## A virtual environment in .venv with everything, and .venv/bin/tidegate

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON3)" || { echo "Tidegate needs Python 3.11 or later on the PATH, or PYTHON3=/path/to/python"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON3) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: setup ## The whole system on this machine, running real jobs; ends by itself
	@$(BIN)/python -m tidegate_cli.demo

lint: setup ## Style, types, layers, protos
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@nice $(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/buf lint
	@if git rev-parse -q --verify origin/main >/dev/null 2>&1; then $(BIN)/buf breaking --against '.git#ref=origin/main'; fi

test: setup ## Everything that can run on this machine
	@$(MAKE) --no-print-directory -j $(if $(TIDEGATE_LAB),1,3) --output-sync lint test-pure test-processes
	@$(BIN)/pytest $(ALONE)

test-pure: setup ## What computes alone: rules, scenarios
	@nice $(BIN)/pytest -n auto --dist loadfile $(PURE)

test-processes: setup ## What starts processes: first the demo and the commands of the documents
	@$(BIN)/pytest $(USUAL)
	@$(BIN)/pytest -n $(BESIDE) --dist loadfile $(addprefix --ignore=,$(PURE) $(USUAL) $(ALONE))

test-kubernetes: setup ## All that runs on a real Kubernetes, a real node included; builds it where it is not there
	@TIDEGATE_LAB=build TIDEGATE_LAB_CASES=all $(BIN)/pytest tests/kubernetes tests/contract

test-serving: setup ## Model servers and stores of models for real; installs what they run in (1.5 GB) where it is not there
	@TIDEGATE_SERVING=install $(BIN)/pytest tests/serving

bench: setup ## Speed, as a table with a reference beside each figure
	@$(BIN)/python -m tests.bench

bench-kubernetes: setup ## kube-scheduler and Tidegate side by side on a real API server (8 minutes)
	@TIDEGATE_LAB=build $(BIN)/python -m tests.bench_kubernetes

proto: setup ## Generate the code of libs/contracts from proto/
	@PYTHON=$(BIN)/python libs/contracts/generate.sh

docs: setup ## Generate the documents that are made from the code
	@$(BIN)/python tests/documents/generate.py

clean: ## Remove what was built (not the data folder)
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist
