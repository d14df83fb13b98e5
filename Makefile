# Every command works from nothing on a fresh machine: the virtual environment is made when it is missing or outdated.
#   make demo    runs the four ready operators beside torch, on a GPU too where one is; pictures go to demo-output/
#   make test    lint and all tests
#   make lint    style and types
#   make docs    builds the documentation as a site, in site/; warnings are errors
#   make bench   measures this machine's CPU, which should be idle otherwise; results go to benchmarks/results/
#   make bench-gpu  measures its GPU likewise
#   make errors  writes docs/errors and the expected texts in tests/errors/cases from what brickwork says now
#   make table   writes the tables and plots of README.md and docs/guide from the results

PYTHON ?= python3
VENV ?= .venv
TORCH_SPEC ?= torch==2.13.0
WORKERS ?= 2

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed-$(subst =,-,$(TORCH_SPEC))
DEMO := $(VENV)/.demo-$(subst =,-,$(TORCH_SPEC))

.PHONY: demo test lint docs bench bench-gpu table errors clean

demo: $(DEMO)
	$(BIN)/python -m examples.demo

test: lint
	OMP_WAIT_POLICY=PASSIVE $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal  # idle threads leave the cores to others

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: $(INSTALLED)
	$(BIN)/python -m brickwork bench all --record

bench-gpu: $(INSTALLED)
	$(BIN)/python -m brickwork bench all --device cuda --record

table: $(INSTALLED)
	$(BIN)/python -m benchmarks.table

errors: $(INSTALLED)
	PYTHONPATH=tests $(BIN)/python -m support.error_cases

clean:
	rm -rf $(VENV) demo-output site .pytest_cache .ruff_cache

$(INSTALLED): EXTRAS := demo,docs,test,lint
$(DEMO): EXTRAS := demo
$(INSTALLED) $(DEMO): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q "$(TORCH_SPEC)" -c constraints.txt
	$(BIN)/python -m pip install -q -e ".[$(EXTRAS)]" -c constraints.txt
	touch $@
