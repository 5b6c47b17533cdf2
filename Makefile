# make demo    train on the embedded corpus and translate five sentences it does not contain
# make test    the test suite
# make test-all   the slow tests, too
# make bench   this project and its peers, side by side (hours); one part: make bench PART=training
# make bench-small   the same on a tiny scale, to see that it runs

PYTHON ?= python3
BIN := .venv/bin
DEMO := runs/phrasebook-en-fr
# What `make bench` measures, and what the engines learn from; without the Hub, a folder: make bench CORPUS=multi30k-en-de
PART ?= all
CORPUS ?= bentrevett/multi30k
BENCH := .venv-bench/bin/python benchmarks/bench.py

.PHONY: demo test test-all bench bench-small clean

demo: .venv/main.stamp
	@if [ -e $(DEMO)/README.md ]; then echo "$(DEMO) is trained already"; \
	elif [ -e $(DEMO)/config.json ]; then $(BIN)/python train.py --resume $(DEMO); \
	else $(BIN)/python train.py; fi
	$(BIN)/python translate.py --model $(DEMO) --input docs/demo.txt
	@echo "Activate the environment for more: . .venv/bin/activate"

test: .venv/dev.stamp
	$(BIN)/python -m pytest -n 2

test-all: .venv/dev.stamp
	$(BIN)/python -m pytest -n 2 -m ""

.venv/main.stamp: requirements.txt
	@echo "installing the packages into .venv (1.5 GB with torch for CPUs)"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

.venv/dev.stamp: .venv/main.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

bench: .venv-bench/main.stamp
	$(BENCH) $(PART) --corpus $(CORPUS)

bench-small: .venv-bench/main.stamp
	$(BENCH) $(PART) --corpus $(CORPUS) --small

.venv-bench/main.stamp: requirements.txt benchmarks/requirements.txt
	@echo "installing the packages and the peers into .venv-bench (1.9 GB with torch for CPUs)"
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check \
		-r requirements.txt -r benchmarks/requirements.txt
	touch $@

clean:
	rm -rf .venv .venv-bench .mypy_cache .ruff_cache .hypothesis translator.egg-info
