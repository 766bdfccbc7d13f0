# Two commands are enough on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
EXTRAS := train,fast,export,plot,serve

# One process per core; the tests of a file stay together, because they share fixtures.
PARALLEL := --numprocesses auto --maxprocesses 4 --dist loadfile

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.txt

.PHONY: demo test quick check format docs wheel clean

demo: .venv/.serve
	@$(BIN)/python examples/demo.py

test: .venv/.installed check
	@$(BIN)/python -m tests.browser
	$(BIN)/python -m pytest $(PARALLEL)

quick: .venv/.installed
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow"

check: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/.installed
	$(BIN)/python docs/make_commands.py
	$(BIN)/python -m mkdocs serve

wheel: .venv/.installed
	$(BIN)/python -m build --wheel

# Translating and serving need a fraction of what training needs.
.venv/.serve: pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stacl needs Python 3.11 or later; for example: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(PIP) --editable ".[serve]"
	@touch $@

# SimulEval pins old versions of what we share with it, so it is installed without its dependencies; the group has them.
.venv/.installed: .venv/.serve
	$(PIP) --upgrade "pip>=25.1"
	$(PIP) --editable ".[$(EXTRAS)]" --group dev --group simuleval
	$(PIP) --no-deps simuleval==1.1.4
	@touch $@

clean:
	rm -rf .venv build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
