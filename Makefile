# Saltpan. `make` alone lists the targets. Works with GNU make 3.81 and newer; every path is relative, so the
# folder's name may hold spaces. A stamp is written only after its step has succeeded.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.SUFFIXES:
# Without bytecode pytest rewrites and compiles every test file in every process: ten seconds of each run.
unexport PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
PYTEST := $(PY) -m pytest
SPARK_TESTS := tests/transforms tests/properties tests/plans
COMET_TESTS := $(wildcard tests/transforms/test_topn*.py) tests/transforms/test_fingerprint.py tests/properties
NEXT_TESTS := tests/transforms tests/plans
E2E_TESTS := tests/e2e
DATA := data/generated/manifest.json
CODE := $(wildcard common jobs tests data bench)
SPARK := 4.1.3
SPARK_NEXT := 4.3.0
UV ?= uv
say = @printf '%s\n' "$(1)" >&2

.PHONY: help setup data topn word-count skew-join lookup test test-fast test-comet e2e lint fmt bench bench-engines bench-topn bench-topn-memory bench-words bench-skew bench-lookup zip clean lock test-next FORCE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z0-9-]*:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

setup: .venv/.dev .venv/.suite $(DATA) ## virtual environment, locked packages, the suite itself, sample data

data: $(DATA) ## a year of flights as Parquet, from a locked package (no download site)

topn: .venv/.run .venv/.suite $(DATA) ## the ten busiest destinations: sets up what is missing, then runs the job
	.venv/bin/saltpan run topn --input data/generated/flights --group-by dest --score 'count(*) as flights' --n 10

word-count: .venv/.run .venv/.suite ## the commonest words of PySpark's own sources, nine megabytes with their documentation
	.venv/bin/saltpan run word-count --input '.venv/lib/python3*/site-packages/pyspark/**/*.py' --stop-words en --min-length 2 --top 20

skew-join: .venv/.run .venv/.suite $(DATA) ## flights without a plane, flights with the weather, and hot carriers taken apart
	.venv/bin/saltpan run skew-join --left data/generated/flights --right data/generated/planes --on tailnum --how anti \
	  --select date,carrier,flight,tailnum
	.venv/bin/saltpan run skew-join --left data/generated/flights --right data/generated/weather --on origin,time_hour \
	  --how left --select date,origin,time_hour,flight,wind_speed
	.venv/bin/saltpan run skew-join --left data/generated/flights --right data/generated/airlines --on carrier \
	  --strategy isolate --verify --select date,carrier,name,flight

lookup: .venv/.run .venv/.suite $(DATA) ## flights with their airlines, airports and planes, into build/; those without are counted and kept
	.venv/bin/saltpan run lookup --facts data/generated/flights --dimension data/generated/airlines --on carrier \
	  --take name=airline --missing fail --output build/lookup/airlines --mode overwrite
	.venv/bin/saltpan run lookup --facts data/generated/flights --dimension data/generated/airports --on dest=faa \
	  --take name=dest_name,lat,lon --missing quarantine --output build/lookup/airports --mode overwrite
	.venv/bin/saltpan run lookup --facts data/generated/flights --dimension data/generated/planes --on tailnum \
	  --take manufacturer,model,year=built --strategy variable --verify --output build/lookup/planes --mode overwrite

test: $(DATA) test-fast ## all tests but e2e: sets up what is missing, then runs them
	$(PYTEST) -m 'spark and not e2e' -n 2 $(SPARK_TESTS)

test-fast: .venv/.dev .venv/.suite ## the tests that need no JVM, in seconds
	$(PYTEST) -m 'not spark' -n 2 --dist worksteal tests/unit tests/architecture common jobs

e2e: .venv/.dev .venv/.suite $(DATA) ## real spark-submit and saltpan runs, each in its own process
	$(PYTEST) -m e2e -n 2 --dist loadfile $(E2E_TESTS)

test-comet: .venv/.dev .venv/.suite $(DATA) ## the tests of transforms and properties with Comet under them
	$(PYTEST) --engine comet -m 'not e2e' -k 'not heap' -n 2 $(COMET_TESTS)

test-next: .venv-next/.next .venv-next/.suite $(DATA) ## the tests on the next Spark, in an environment of its own
	.venv-next/bin/python -m pytest -m 'not e2e and not properties' -k 'not heap' -n 2 $(NEXT_TESTS)

lint: .venv/.dev .venv/.suite ## ruff, mypy and the floors of import-linter
	$(PY) -m ruff check $(CODE)
	$(PY) -m ruff format --check $(CODE)
	$(PY) -m mypy
	.venv/bin/lint-imports

fmt: .venv/.dev ## format the code and sort its imports
	$(PY) -m ruff check --fix $(CODE)
	$(PY) -m ruff format $(CODE)

bench: ## list the benchmarks
	@for file in $$(grep -l __main__ bench/*.py); do \
	  printf '  %-28s %s\n' "$$file" "$$(sed -n '1{s/^"""//;s/"""$$//;p;}' "$$file")"; \
	done

bench-engines: .venv/.dev .venv/.suite ## 20 million rows: plain Spark against Comet on group by, window and join
	$(PY) bench/engines.py

bench-topn: .venv/.dev .venv/.suite ## 20 million rows: every strategy of topn, plain and on Comet, DuckDB and Polars beside
	$(PY) bench/topn.py

bench-topn-memory: .venv/.dev .venv/.suite ## what the driver of topn needs of memory at 5 and at 20 million rows, its executor apart
	$(PY) bench/topn_memory.py

bench-skew: .venv/.dev .venv/.suite ## 20 million rows under skew: skew-join and skew-aggregate beside Spark's own plans, with a picture
	$(PY) bench/skew.py
	$(PY) bench/skew_aggregate.py

bench-lookup: .venv/.dev .venv/.suite ## 20 million lookups in up to a million rows: broadcast variable, broadcast join, shuffle join
	$(PY) bench/lookup.py

bench-words: .venv/.dev .venv/.suite ## 370 MB of text: every strategy of word-count, DuckDB and Polars beside
	$(PY) bench/words.py

zip: .venv/.run .venv/.suite ## dist/: the wheel, and the archive for --py-files
	@rm -f dist/saltpan-*.whl
	$(PY) -m hatchling build -t wheel -d dist
	$(PY) -m common.engine.package dist/saltpan-py-files.zip

clean: ## remove what make and the tools have made, the virtual environments too
	rm -rf .venv .venv-next .cache data/generated dist build spark-warehouse metastore_db derby.log
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find $(CODE) -type d -name __pycache__ -prune -exec rm -rf {} +

# The first lock gives its pins to the other two, so that they differ only where they must.
lock: ## re-make requirements/*.lock from pyproject.toml (UPGRADE=1: the newest versions)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv: python3 -m pip install uv" >&2; exit 1; }
	$(call compile,dev,dev,$(SPARK)) $(if $(UPGRADE),--upgrade)
	cp requirements/dev.lock requirements/run.lock
	$(call compile,run,run,$(SPARK))
	cp requirements/dev.lock requirements/next.lock
	$(call compile,next,dev,$(SPARK_NEXT))

# $(1) lock, $(2) dependency group, $(3) version of Spark
compile = echo 'pyspark==$(3)' | $(UV) pip compile --quiet pyproject.toml --group $(2) --constraints - \
  --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
  --custom-compile-command "make lock" --output-file requirements/$(1).lock

# --- The virtual environments. Each is made anew when it was moved, lost its Python, or an install was cut short
# (pip takes a half-copied package for an installed one; .installing holds the process that installs).
healthy = $(shell test -x $(1)/bin/python && test ! -e $(1)/.installing && \
  test "$$(cat $(1)/.created 2>/dev/null)" = "$$(pwd -P)" && echo yes)

.venv/.created: $(if $(call healthy,.venv),,FORCE)
	$(make-environment)
.venv-next/.created: $(if $(call healthy,.venv-next),,FORCE)
	$(make-environment)

.venv/.run: requirements/run.lock .venv/.created
	$(install-packages)
.venv/.dev: requirements/dev.lock .venv/.created
	$(install-packages)
	@touch .venv/.run
.venv-next/.next: requirements/next.lock .venv-next/.created
	$(install-packages)

.venv/.suite: .venv/.run pyproject.toml conf/spark-submit.sh
	$(install-suite)
.venv-next/.suite: .venv-next/.next pyproject.toml conf/spark-submit.sh
	$(install-suite)

$(DATA): data/generate.py | .venv/.run
	$(call say,Making the sample data in data/generated.)
	@$(PY) data/generate.py
	@touch $@

define make-environment
@if busy=$$(cat $(@D)/.installing 2>/dev/null) && kill -0 $$busy 2>/dev/null; then \
  echo "Another make (process $$busy) is installing into $(@D): wait for it, then try again." >&2; exit 1; \
fi
@$(find-python); $(explain-python); \
printf '%s\n' "Making $(@D) with $$("$$found" --version)." >&2; \
"$$found" -m venv --clear $(@D) && pwd -P > $@
endef

define install-packages
$(call say,Installing the locked packages of $< into $(@D): about two minutes the first time$(comma) seconds from then on.)
@echo "$$PPID" >$(@D)/.installing
@PIP_USER=0 $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
@rm $(@D)/.installing
@touch $@
endef

# Spark's own spark-submit finds pyspark only while the environment is active: ours takes its place.
define install-suite
$(call say,Installing the suite into $(@D).)
@PIP_USER=0 $(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
@cp conf/spark-submit.sh $(@D)/bin/spark-submit
@chmod +x $(@D)/bin/spark-submit
@touch $@
endef

comma := ,

# found: the first suitable Python. bare: one that would be, had it venv and ensurepip. A name on PATH proves
# nothing (pyenv has shims for versions that are off), so each is run. `make PYTHON=…` names one.
define find-python
found=; bare=; \
for name in $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11 python3.14); do \
  "$$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1 || continue; \
  if "$$name" -c 'import ensurepip, venv' >/dev/null 2>&1; then found=$$name; break; fi; \
  bare=$${bare:-$$name}; \
done
endef

define explain-python
if [ -z "$$found" ] && [ -n "$$bare" ]; then \
  package=$$("$$bare" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
  if command -v apt-get >/dev/null; then how="sudo apt-get install $$package"; \
  else how="install the venv and ensurepip modules of that Python"; fi; \
  echo "$$bare ($$("$$bare" --version)) cannot make virtual environments: $$how, then try again." >&2; exit 1; \
elif [ -z "$$found" ]; then \
  if command -v apt-get >/dev/null && ! command -v python3 >/dev/null; then \
    how="sudo apt-get install python3 python3-venv"; \
  elif command -v apt-get >/dev/null; then \
    how="sudo apt-get install python3.11 python3.11-venv (or 3.12, 3.13: what your release has)"; \
  elif command -v dnf >/dev/null; then how="sudo dnf install python3.12"; \
  elif command -v apk >/dev/null; then how="apk add python3"; \
  elif command -v brew >/dev/null; then how="brew install python@3.13"; \
  else how="install it with your system's package manager"; fi; \
  echo "$(or $(PYTHON),python3) is not a Python 3.11 to 3.14: $$how, or name another: make PYTHON=/path/to/it." >&2; \
  exit 1; \
fi
endef
