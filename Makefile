# Everything happens in a virtual environment inside the checkout; each target sets up its own.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
# Packages to leave out, to test that Stopwise works without them: make test WITHOUT=numba
WITHOUT ?=
# What `make check` runs of the tests, less what is marked slow: nothing that compiles the kernels,
# which takes a minute after every change of a kernel or a policy.
QUICK := src/stopwise/*.py src/stopwise/policies src/stopwise/live src/stopwise/situations tests/test_costs.py tests/test_decisions.py \
  tests/test_display.py tests/test_docstrings.py tests/test_evidence.py tests/test_import.py tests/test_packaging.py \
  tests/test_theory.py tests/test_words.py tests/live/test_learner.py
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
# The tests start hundreds of processes: each would compile all that it imports again.
export PYTHONDONTWRITEBYTECODE :=
# Installed by uv, which is several times as quick as pip; by pip where only pip knows the way to packages.
# Neither compiles. What `import stopwise` loads is compiled here, or a shell that writes no bytecode
# (PYTHONDONTWRITEBYTECODE) would compile it at every start: a third of a second.
LOCKED := --require-hashes --no-deps -r requirements/dev.lock
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

.PHONY: help setup browser demo check test bench clients lint style types imports kernels docs pictures format lock clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(VENV)/.ready: requirements/dev.lock pyproject.toml
	@echo "setting up $(VENV) (once; about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stopwise needs Python 3.11 or newer; set PYTHON=...")'
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements/dev.lock > $(VENV)/uv.lock
	@$(PIP) install --require-hashes --no-deps -r $(VENV)/uv.lock
	@$(BIN)/uv pip install --quiet --native-tls --python $(BIN)/python $(LOCKED) || $(PIP) install --no-compile $(LOCKED)
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q -x '/tests/' src/stopwise $$($(BIN)/python -c 'import numpy; print(numpy.__path__[0])') || true
	@test -z "$(WITHOUT)" || $(PIP) uninstall --yes $(WITHOUT)
	@touch $@

setup: $(VENV)/.ready  ## make the virtual environment

browser:
	@bash scripts/need_browser.sh

demo: setup  ## reproduce the whole paper at full size into out/paper
	@$(BIN)/stopwise reproduce --out out/paper

check: setup lint  ## an answer in under a minute: lint, types, direction of imports, the quick tests
	@$(BIN)/python -m pytest -n 2 -m "not slow" --deselect src/stopwise/__init__.py $(QUICK)

test: setup style browser  ## lint, types, direction of imports, all tests
	@$(MAKE) --no-print-directory --jobs=3 --output-sync types imports kernels
	@$(BIN)/python -m pytest -n 2 --dist worksteal

docs: setup  ## build the documentation site into site/
	@$(BIN)/mkdocs build --strict --quiet && echo "the site is in site/index.html"

pictures: setup  ## draw the pictures of README and docs again (needs chromium)
	@$(BIN)/python scripts/make_pictures.py
	@$(BIN)/python scripts/make_service_pictures.py

bench: setup  ## measure the engine against others into benchmarks/RESULTS.md (about five minutes)
	@test -e $(VENV)/.bench || ($(PIP) install --require-hashes --no-deps -r requirements/bench.lock && touch $(VENV)/.bench)
	@$(BIN)/python benchmarks/engine.py

clients: setup  ## real clients against the service, in an environment of their own (needs a network)
	@$(BIN)/python benchmarks/clients.py

lint: setup style
	@$(MAKE) --no-print-directory --jobs=2 --output-sync types imports

style: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

kernels:
	@$(BIN)/python scripts/compile_kernels.py

types:
	@$(BIN)/mypy

imports:
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

format: setup  ## format the code and fix what can be fixed
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock:  ## write requirements/*.lock again after a change of dependencies (needs a network)
	@test -x $(BIN)/uv || ($(PYTHON) -m venv $(VENV) && $(PIP) install "$$(grep '^uv==' requirements/dev.txt)")
	@$(LOCK) pyproject.toml --all-extras --group dev requirements/dev.txt -o requirements/dev.lock
	@$(LOCK) requirements/bench.txt -c requirements/dev.lock -o requirements/bench.lock
	@$(LOCK) requirements/clients.txt -o requirements/clients.lock

clean:  ## remove the environment and all that was made
	rm -rf $(VENV) .venv-clients out site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
