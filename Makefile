# Every target makes and reuses its own virtual environment in .venv; a first run says what it is doing.
SHELL := /bin/bash
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do $$p -c 'import sys; sys.exit(not (3,11) <= sys.version_info[:2] <= (3,13))' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
REAL := $(abspath ../shared/real)
DATA := $(abspath ../shared/data)
ifneq ($(wildcard $(REAL)/cluster.py),)
export ITBENCH_REAL ?= $(REAL)
endif
ifneq ($(wildcard $(DATA)/README.md),)
export ITBENCH_DATA ?= $(DATA)
endif
ARGS ?=
# Compiled bytecode saves seconds at every start.
unexport PYTHONDONTWRITEBYTECODE
# uv brings its own list of authorities; the machine's own is the right one behind a company's proxy.
export UV_SYSTEM_CERTS = 1

.PHONY: scenario test lint bench prove docs clean
scenario: $(STAMP)
	@$(BIN)/itbench run $(or $(S),$(error say which scenario: make scenario S=sre-12)) $(ARGS)
test: $(STAMP)
	@$(BIN)/python -m pytest -n 2 $(ARGS)
lint: $(STAMP)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
bench: $(STAMP)
	@$(BIN)/python -m benchmarks $(ARGS)
prove: $(STAMP)
	@$(BIN)/itbench prove $(or $(S),all) $(ARGS)
docs: $(STAMP)
	@$(BIN)/python scripts/make_docs.py $(ARGS)
clean:
	rm -rf $(VENV) runs

$(STAMP): requirements.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "itbench needs Python 3.11, 3.12 or 3.13 on PATH"; exit 2; }
	@echo "Setting up $(VENV) with $(PYTHON) (once, about half a minute) ..."
	@rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv
	@$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r requirements.txt
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps -e .
	@$(BIN)/python -c "from itbench.world.flow import warm; warm()"
	@touch $@
