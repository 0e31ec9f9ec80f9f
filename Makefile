# `make` alone lists the targets. Everything they create is below .local; `make clean` deletes it.

# A test run and a demo start hundreds of Python processes. Where this is set, each compiles the project anew, and each of
# pytest's processes all tests as well: 15 s of a core.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .local/venv
CODE := $(wildcard hatch_build.py storage_lib plugins dags docker/local benchmarks tests)
# `make test FAST=1` skips tests that start a broker, a JVM or a server; ARGS go to pytest or the demo unchanged.
BENCHMARKS = $(or $(ONLY),$(sort $(basename $(notdir $(wildcard benchmarks/*.py)))))
MINUTES ?= 60
# Most of a test that starts servers is waiting, so there are more processes than cores where memory allows: four want
# 20 GB. WORKERS=0 runs the tests in one process, for a debugger.
WORKERS ?= $(shell [ "$$(awk '/MemTotal/ {print int($$2 / 1048576)}' /proc/meminfo 2>/dev/null)" -ge 20 ] 2>/dev/null && echo 4 || echo 2)
UNIT_TESTS := tests/schema tests/format tests/file_store tests/log_store/codec tests/log_store/memory tests/progress tests/sql tests/mutants \
	tests/test_changelog.py tests/test_facade.py tests/test_folders.py tests/test_public_names.py tests/test_error_tree.py \
	tests/test_generated_pages.py
# Of the folders of the core, those that take little time; `make core ARGS=tests/table` runs others.
CORE_TESTS := tests/schema tests/format tests/io tests/file_store tests/log_store tests/progress tests/catalog \
	$(addprefix tests/table/,evolve input inspect protocol read sources stream verbs write) \
	tests/test_built_once.py tests/test_dump.py tests/test_facade.py tests/test_life_of_a_row.py tests/test_missing_extras.py
SPARK_TESTS := tests/spark tests/sql tests/materialized
AIRFLOW_TESTS := tests/plugins tests/dags
# Airflow 3.1 and 3.2 use deprecated parts of themselves and of newer packages.
AIRFLOW_WARNINGS := -W ignore::FutureWarning -W ignore::DeprecationWarning
FAST_ARGS := $(if $(FAST),-m "not integration")

.DEFAULT_GOAL := help
.PHONY: help dbt setup servers demo down capture test deep mutants core lowest spark airflow corners unit check lint docs format bench soak drill lock clean

help: ## List these targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: ## Create the environments and fetch Kafka into .local; later runs take no time
	@$(PYTHON) docker/local/stack_setup.py

servers: ## Also install the servers that only tests use: S3 (needs Go), PostgreSQL (has to be installed), HDFS, a registry, an Iceberg REST catalog, Paimon's Java core, Flink, Spark's Kafka connector and client of S3, archives for quick starts
	@$(PYTHON) docker/local/stack_setup.py servers

demo: setup ## Run the whole product on this machine, without Docker
	@$(VENV)/bin/python docker/local/demo.py $(ARGS)

down: ## Stop the processes of the demo
	@if [ -d .local/demo ]; then \
		{ [ -x $(VENV)/bin/python ] || $(MAKE) --no-print-directory setup; } && $(VENV)/bin/python docker/local/demo.py down; \
	fi

capture: setup ## Run PostgreSQL, Kafka and Debezium on this machine, for the tutorial on change data capture; needs `make servers`
	@$(VENV)/bin/python docker/local/capture_servers.py $(ARGS)

test: setup ## Run the tests; FAST=1 leaves out those that start other processes; CHANGED=main runs those that a change since this revision can affect; SLICE=3 also runs one of sixteen parts of those that only `make deep` runs
	@set -e; $(if $(CHANGED),chosen="$$($(VENV)/bin/python -m tests.support.affected_tests "$(CHANGED)")"; [ -n "$$chosen" ] || exit 0;) \
	set -x; $(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder $(FAST_ARGS) \
		$(if $(SLICE),--with-slice $(SLICE)) $(ARGS) $(if $(CHANGED),$$chosen)

deep: setup ## Run all tests, also those that `make test` leaves out because others prove the same with fewer values; SLICE=3 runs one of sixteen parts of what is left out
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder $(if $(SLICE),--slice $(SLICE),--deep) $(ARGS)

mutants: setup ## Plant 47 faults in a copy of the code, one by one, and show which test finds each; ONLY=lease for some
	$(VENV)/bin/python -m tests.mutants $(if $(ONLY),--only $(ONLY)) $(ARGS)

core: ## Install only the core, without extras, and run what belongs to it; SLICE=3 runs one of sixteen parts of that
	@$(PYTHON) docker/local/stack_setup.py core
	.local/core/bin/python -m pytest -q -n 2 --dist loadscope -m "not integration" $(if $(SLICE),--part $(SLICE)) $(or $(ARGS),$(CORE_TESTS))

lowest: ## Install the lowest versions that pyproject.toml admits, and run the tests that start no other process; SLICE=3 runs one of sixteen parts of them
	@$(PYTHON) docker/local/stack_setup.py lowest
	.local/lowest/bin/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder $(AIRFLOW_WARNINGS) -m "not integration" $(if $(SLICE),--part $(SLICE)) $(ARGS)

spark: VERSION ?= 4.2
spark: setup ## Install another version of Spark, VERSION=4.0, 4.1 or 4.2, and run the tests of Spark, SQL and materialized tables with it; SLICE=3 runs one of sixteen parts of them
	@$(PYTHON) docker/local/stack_setup.py spark $(VERSION)
	.local/spark_$(subst .,_,$(VERSION))/bin/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder \
		--junitxml .local/spark_$(subst .,_,$(VERSION))/results.xml $(if $(SLICE),--part $(SLICE)) $(ARGS) $(SPARK_TESTS)

airflow: VERSION ?= 3.1
airflow: setup ## Install another version of Airflow, VERSION=3.1, 3.2 or 3.4 (a beta), and run the tests of the plugin and the DAGs with it; SLICE=3 runs one of sixteen parts of them
	@$(PYTHON) docker/local/stack_setup.py airflow $(VERSION)
	.local/airflow_$(subst .,_,$(VERSION))/bin/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder \
		--junitxml .local/airflow_$(subst .,_,$(VERSION))/results$(SLICE).xml $(AIRFLOW_WARNINGS) $(if $(SLICE),--part $(SLICE)) $(ARGS) $(AIRFLOW_TESTS)

corners: ## Run core, lowest, each spark, each airflow and dbt one after the other, also if one fails, and sum up; ONLY="lowest spark_4_0 airflow" for some; SLICE=3 runs one of sixteen parts of each but dbt
	@$(PYTHON) docker/local/corners.py --only "$(ONLY)" --slice "$(SLICE)"

dbt: ## Install dbt and its adapter from dbt/, and run dbt's suites and ours with it
	@$(PYTHON) docker/local/stack_setup.py dbt
	cd .local && dbt/bin/python -m pytest -q -p no:cacheprovider -W ignore --rootdir ../dbt -c ../dbt/pyproject.toml $(ARGS) ../dbt/suites

unit: setup ## Run the tests that are pure computation or use local files only, in under a minute
	$(VENV)/bin/python -m pytest -q -n 2 --dist loadscope -m "not integration and not airflow" $(UNIT_TESTS) $(ARGS)

check: lint unit ## `make lint` and `make unit`

lint: setup ## Lint, formatting, types and import contracts
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy $(CODE)
# its cache misses newly added modules
	$(VENV)/bin/lint-imports --no-cache

docs: ## Build the documentation site into .local/site; a broken link or another warning fails it
	@$(PYTHON) docker/local/stack_setup.py docs
	NO_MKDOCS_2_WARNING=1 .local/docs/bin/mkdocs build --strict

format: setup ## Format the code and apply the linter's fixes
	$(VENV)/bin/ruff check --fix-only .
	$(VENV)/bin/ruff format .

bench: setup ## Run the benchmarks, or one: ONLY=file_store; they need an idle machine
	@set -e; for name in $(BENCHMARKS); do echo "== $$name"; $(VENV)/bin/python -m benchmarks.$$name $(ARGS); done

soak: setup ## Write, compact and read one table for MINUTES=60 while its processes and broker are killed
	$(VENV)/bin/python -m tests.soak.soak --minutes $(MINUTES) $(ARGS)

drill: setup ## Kill the servers of a followed database; kill and crowd a real Airflow: every operator, 30 partitions while a stream runs, 50 tables, a sink on a cluster; kill refreshes of a chain of tables and a real-time stream; send all packages to a Spark cluster; three hours
	$(VENV)/bin/python -m pytest tests/cdc tests/dags tests/spark/test_cluster.py tests/spark/test_real_time.py tests/spark/materialized/test_chain_is_killed.py -m drill $(ARGS)

lock: ## Resolve the locks again; UPGRADE=1 also upgrades locked versions
	@$(PYTHON) docker/local/stack_setup.py lock $(if $(UPGRADE),--upgrade)

clean: ## Delete everything that was created: .local and the tools' caches
	rm -rf .local .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
