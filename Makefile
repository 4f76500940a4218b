PYTHON ?= python3
BIN = .venv/bin

.PHONY: help install run test test-pi lint bench check clean

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

install: .venv/installed ## make the environment in .venv

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --disable-pip-version-check --editable . --group dev
	touch .venv/installed

run: install ## index your Pi sessions (or the sample) and show a search
	$(BIN)/sessionindex demo

test: install .pi-test/installed ## run the whole suite
	$(BIN)/pytest -n auto

test-pi: install .pi-test/installed ## run the part with the real Pi
	$(BIN)/pytest -n auto tests/test_pi_*.py tests/test_trim_pi.py

.pi-test/installed: tests/pi_home.py # stays away where Pi cannot be installed; the tests say why
	$(BIN)/python tests/pi_home.py

lint: install ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: install ## measure, as ratios in one run
	$(BIN)/python benchmarks/bench.py all

check: lint test ## what a reviewer runs

clean: ## remove what the other targets made
	rm -rf .venv .pi-test build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
