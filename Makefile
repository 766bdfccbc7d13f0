# Two commands are enough on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
EXTRAS := train,fast,export,plot,serve,dev

# A process for each core; a file's tests stay together, for they share what they set up.
TOGETHER := --numprocesses auto --maxprocesses 4 --dist loadfile

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.txt --editable

.PHONY: demo test quick check format docs wheel clean

demo: .venv/.serve
	@$(BIN)/python examples/demo.py

test: .venv/.installed check
	@$(BIN)/python -m tests.browser
	$(BIN)/python -m pytest $(TOGETHER)

quick: .venv/.installed
	$(BIN)/python -m pytest $(TOGETHER) -m "not slow"

check: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/.installed
	$(BIN)/python docs/make_commands.py

wheel: .venv/.installed
	$(BIN)/python -m build --wheel

# To translate and to serve takes a fraction of what training takes.
.venv/.serve: pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stacl needs Python 3.11; name one: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(INSTALL) ".[serve]"
	@touch $@

.venv/.installed: .venv/.serve
	$(INSTALL) ".[$(EXTRAS)]"
	@touch $@

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
