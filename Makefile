PYTHON ?= python3
BIN = .venv/bin

.PHONY: help install run test lint bench check clean

help: ## say what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

install: .venv/installed ## make the environment in .venv

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --disable-pip-version-check --editable . --group dev
	touch .venv/installed

run: install ## index your Pi sessions (or the sample) and show a search
	$(BIN)/sessionindex demo

test: install ## run the whole suite
	$(BIN)/pytest

lint: install ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: install ## measure, as ratios in one run
	$(BIN)/python benchmarks/bench.py all

check: lint test ## what a reviewer runs

clean: ## remove what the other targets made
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
