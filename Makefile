# make demo    train on the embedded corpus and translate five sentences it does not contain
# make test    the whole test suite

PYTHON ?= python3
BIN := .venv/bin
DEMO := runs/phrasebook-en-fr

.PHONY: demo test clean

demo: .venv/main.stamp
	@if [ -e $(DEMO)/README.md ]; then echo "$(DEMO) is trained already"; \
	elif [ -e $(DEMO)/config.json ]; then $(BIN)/python train.py --resume $(DEMO); \
	else $(BIN)/python train.py; fi
	$(BIN)/python translate.py --model $(DEMO) --input docs/demo.txt
	@echo "Activate the environment for more: . .venv/bin/activate"

test: .venv/dev.stamp
	$(BIN)/python -m pytest -n 2

.venv/main.stamp: requirements.txt
	@echo "installing the packages into .venv (1.8 GB)"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

.venv/dev.stamp: .venv/main.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis translator.egg-info
