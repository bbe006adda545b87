# The developer's verbs, the same by hand and in CI: setup demo lab test lint types bench.
# Each sets up what it needs, once; after that it starts within seconds.
#
#   make demo                                      a tour on the default model, which is fetched once (100 MB)
#   make demo TORCH_INDEX=URL                      the same with torch from this index, such as PyTorch's own for
#                                                  CPUs (README.md names it): without it, Linux gets the CUDA
#                                                  build of torch, which is several gigabytes
#   make lab                                       JupyterLab on notebooks/
#   make lab LAB_ARGS="--no-browser --port 8890"   the same with options of its own; as root it also wants --allow-root
#   make test PYTEST_ARGS="-k radix -x"            some of the tests
#   make test PYTHON=python3.12 VENV=.venv-3.12    another Python, in an environment of its own

PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=
PYTEST_ARGS ?=
LAB_ARGS ?=

PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
TORCH := $(shell grep '^torch==' constraints.txt)

.DEFAULT_GOAL := help
.PHONY: help setup model demo lab test test-lab lint types bench bench-grammar clean

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile

# The stamps are files in the environment, newer than what it was made from.
$(VENV)/.base: pyproject.toml constraints.txt
	@echo "setting up $(VENV) (this takes minutes, once)"
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(PIP) --no-deps --index-url $(TORCH_INDEX) $(TORCH))
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(PIP) --editable ".[dev]"
	@touch $@

# Older versions of ipykernel, beside the installed one, to be tried in a browser.
$(VENV)/.kernels: $(VENV)/.dev tests/browser/kernels.py
	@$(PY) -m tests.browser.kernels
	@touch $@

$(VENV)/.lab: $(VENV)/.base
	$(PIP) --editable ".[lab]"
	@touch $@

# guidance, one of those that are measured, pins an older llguidance than nbsglang needs, so pip would not install the
# two together. It works with the newer one, and what else it imports is here already: no dependencies, then. Where it
# does not run all the same, the benchmark says so.
$(VENV)/.bench: $(VENV)/.dev
	$(PIP) --editable ".[bench]"
	$(PIP) --no-deps guidance guidance-stitch xgrammar outlines-core apache-tvm-ffi
	@touch $@

setup: $(VENV)/.dev model

model: $(VENV)/.base
	@$(PY) -m nbsglang.engine.fetch

demo: model
	@$(PY) examples/demo.py

# Without the model Lab opens all the same: a notebook then says what is missing and what helps.
lab: $(VENV)/.lab
	-@$(PY) -m nbsglang.engine.fetch
	@$(PY) -m jupyterlab notebooks $(LAB_ARGS)

# Without the model, tests that need it say so (and fail in CI): not a reason to run none.
# Without a browser it skips what needs one, and says so (and fails in CI).
test: $(VENV)/.kernels
	-@$(PY) -m nbsglang.engine.fetch
	@$(PY) -m pytest $(PYTEST_ARGS)

# Of the tests, the live views in a real JupyterLab and Notebook 7; they need Chromium and Node.js.
test-lab: $(VENV)/.kernels
	@$(PY) -m pytest tests/browser $(PYTEST_ARGS)

lint: $(VENV)/.dev
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: $(VENV)/.dev
	@$(PY) -m mypy

bench: $(VENV)/.bench model
	@$(PY) -m benchmarks

bench-grammar: $(VENV)/.bench model
	@$(PY) -m benchmarks.grammar --walks 10000
	@$(PY) -m benchmarks.jump

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
