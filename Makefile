# graphsched: every target does its own set-up. `make` alone lists them.
VENV ?= .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.stamp
# uv writes the lock files from a throw-away environment; nothing else needs it.
UV_REQUIREMENT := uv>=0.8
SOURCES := graphsched tests scripts benchmarks examples
# Those that hold Python files; mypy refuses the others.
PRESENT = $(foreach folder,$(SOURCES),$(if $(shell find $(folder) -name '*.py' -print -quit 2>/dev/null),$(folder)))

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## Make .venv from the lock file (no work when it is up to date)

$(STAMP): pyproject.toml requirements-dev.lock scripts/setup-venv.sh
	@scripts/setup-venv.sh $(VENV)
	@touch $@

.PHONY: demo
demo: setup ## Schedule the openb trace offline and write a report (ten seconds once set up, no Go)
	@$(PY) examples/openb/demo.py

.PHONY: cluster-demo
cluster-demo: setup ## The same live: real etcd, kube-apiserver and kwok on loopback
	@$(PY) examples/cluster/demo.py

# Many of them start the program, which is compiled once even where the machine says that bytecode is not to be kept.
.PHONY: test
test: setup ## Run the tests that need no control plane (minutes, no Go)
	@PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -n auto --dist worksteal -m "not cluster and not neighbours" \
		$(PYTEST_ARGS)

.PHONY: test-cluster
test-cluster: setup ## Run the tests on a real control plane (builds it once)
	@$(PY) -m pytest -m cluster $(PYTEST_ARGS)

# The ends of the supported range; the version in between is that of test-cluster. Not run on them: what compares
# decisions with kube-scheduler's, whose semantics are followed as they are in the version in between.
OTHER_VERSIONS := v1.34.4 v1.37.2

.PHONY: test-versions
test-versions: setup ## Run the live tests on the oldest and newest Kubernetes supported (builds each once)
	@for version in $(OTHER_VERSIONS); do \
		echo "=== Kubernetes $$version"; \
		GRAPHSCHED_KUBERNETES=$$version $(PY) -m pytest -m cluster tests/controlplane/test_harness.py \
			tests/contract tests/cluster --ignore tests/cluster/test_shadow.py $(PYTEST_ARGS) || exit 1; \
	done

.PHONY: torture
torture: setup ## Play the fault table with 20 seeds on a real control plane (SEEDS=20 ONLY=503/bind)
	@$(PY) -m tests.faults $(if $(SEEDS),--seeds $(SEEDS)) $(if $(ONLY),--only '$(ONLY)') $(TORTURE_ARGS)

.PHONY: soak
soak: setup ## Let every mode live beside kube-scheduler on full nodes for MINUTES=20, and judge it from outside
	@$(PY) -m tests.soak $(if $(MINUTES),--minutes $(MINUTES)) $(SOAK_ARGS)

.PHONY: test-neighbours
test-neighbours: setup ## Run the tests beside Karpenter and the descheduler (builds each once)
	@$(PY) -m pytest -m neighbours tests/neighbours $(PYTEST_ARGS)

.PHONY: oracle
oracle: setup ## Build the oracle, kube-scheduler's plugins behind evaluate's contract
	@$(PY) -m tests.oracle.program

.PHONY: fuzz
fuzz: setup ## Compare with the oracle on scenarios, or on event sequences (SECONDS=60 SEED=1 SEQUENCES=1000)
	@$(PY) -m tests.fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(SEQUENCES),--sequences $(SEQUENCES)) $(FUZZ_ARGS)

.PHONY: simulation
simulation: setup ## Simulate clusters full of faults, each seed the same run every time (SEEDS=1000 FIRST=1 SEED=7)
	@$(PY) -m tests.simulation $(if $(SEED),--seed $(SEED) --trace,--seeds $(or $(SEEDS),1000) --first $(or $(FIRST),1))

.PHONY: check
check: setup ## Formatting, lint, types, layers and tidiness
	@$(PY) -m ruff format --check --quiet . || { echo "check: run 'make format'" >&2; exit 1; }
	@$(PY) -m ruff check --quiet .
	@$(PY) -m mypy $(PRESENT)
	@$(VENV)/bin/lint-imports --no-logo
	@$(PY) -m pytest -q -p no:randomly tests/architecture

.PHONY: format
format: setup ## Format the sources and mend what lint can mend
	@$(PY) -m ruff check --quiet --fix-only .
	@$(PY) -m ruff format --quiet .

.PHONY: bench
bench: setup ## Benchmark the engine
	@$(PY) -m benchmarks.engine

.PHONY: bench-graph
bench-graph: setup ## Benchmark the graph beside plain ways, against its bars (ROW='visited state' BENCH_ARGS=--quick)
	@$(PY) -m benchmarks.graph $(if $(ROW),--row '$(ROW)') $(BENCH_ARGS)

.PHONY: bench-live
bench-live: setup ## Benchmark beside kube-scheduler on a real API server (KIND=basic, affinity or spread)
	@$(PY) -m benchmarks.live $(if $(KIND),--kind $(KIND)) $(BENCH_ARGS)

.PHONY: generate
generate: setup ## Regenerate the FlatBuffers code from schemas/*.fbs
	@PATH="$(abspath $(VENV))/bin:$$PATH" scripts/generate.sh graphsched/graph/generated

.PHONY: chart-test
chart-test: setup ## Build helm once, render the chart and check it against the API's schemas
	@$(PY) scripts/build_helm.py
	@GRAPHSCHED_CHART_RENDER=required $(PY) -m pytest tests/chart $(PYTEST_ARGS)

.PHONY: audit
audit: setup ## Check that dependencies are pinned by hash, and ask for known vulnerabilities where a database answers
	@$(PY) -m scripts.audit

.PHONY: image-steps
image-steps: setup ## Run the Dockerfile's steps on this machine
	@$(PY) scripts/image_steps.py

.PHONY: dist
dist: setup ## Build the wheel and the sdist into dist/
	@rm -rf dist
	@$(PY) -m build --no-isolation --outdir dist . >/dev/null
	@ls -1 dist

.PHONY: lock
lock: ## Regenerate the lock files from pyproject.toml
	@UV_REQUIREMENT="$(UV_REQUIREMENT)" scripts/lock.sh

.PHONY: clean
clean: ## Remove everything that was made here
	@rm -rf $(VENV) build dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
