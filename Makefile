# Everything happens in a virtual environment inside the checkout; each target sets up its own.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3

.PHONY: help setup demo test bench lint docs format clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	@echo "setting up $(VENV) (once; about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stopwise needs Python 3.11 or newer; set PYTHON=...")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(VENV)/.ready  ## make the virtual environment

demo: setup  ## reproduce the whole paper at full size into out/paper
	@$(BIN)/stopwise reproduce --out out/paper

test: setup lint  ## lint, types, direction of imports, all tests
	@$(BIN)/python -m pytest -n 2

docs: setup  ## build the documentation site into site/
	@$(BIN)/mkdocs build --strict --quiet && echo "the site is in site/index.html"

bench: setup  ## measure the engine against others into benchmarks/RESULTS.md (about five minutes)
	@test -e $(VENV)/.bench || ($(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/bench.txt && touch $(VENV)/.bench)
	@$(BIN)/python benchmarks/engine.py

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

format: setup  ## format the code and mend what can be mended
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:  ## remove the environment and all that was made
	rm -rf $(VENV) out site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
