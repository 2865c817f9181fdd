# make demo      set everything up, run the demonstration, say where its page is
# make test      set everything up, run the checks and the tests
# make test-all  the same with full counts and the optional libraries
PYTHON ?= python3
VENV   ?= .venv
DRIVER := $(shell command -v nvidia-smi 2>/dev/null)
PINS   := $(if $(DRIVER),constraints-cuda.txt,constraints-cpu.txt)
# An extra package index for torch, where pip's own settings name none: make test TORCH_INDEX=https://...
PIP    := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -c $(PINS)
READY  := $(VENV)/.ready
READY_ALL := $(VENV)/.ready-all

.PHONY: demo test test-all lint clean
demo: $(READY)
	$(VENV)/bin/linocut demo --out out/demo

test: $(READY) lint
	$(VENV)/bin/python -m pytest -n auto

test-all: $(READY_ALL) lint
	$(VENV)/bin/python -m pytest --full -n auto

lint: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

$(READY): pyproject.toml constraints.txt $(PINS)
	@echo "Setting up $(VENV) with $(PINS): once, a few minutes."
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[dev]"
	@touch $@

# torchvision and torchattacks ask for other builds of torch or for old pins, so they are no extras, and come alone.
$(READY_ALL): $(READY)
	$(PIP) -e ".[all]"
	$(PIP) --no-deps torchvision torchattacks
	@touch $@

clean:
	rm -rf $(VENV) out dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
