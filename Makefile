# One line for each need; docs/HACKING.md says more. Everything runs from .venv, which `setup` makes and keeps current.

.DEFAULT_GOAL := help
.PHONY: help setup demo test soak compiled cost quick lint static swarm kill-loop verb-storm conformance load-corpus round-trips fuzz-scheduler fuzz-properties mutants fuzz-journal fuzz-decoders fuzz-input bench-scheduler bench-gpu bench-store lab bench-failover bench-databases bench-large bench-snapshot bench-monitors tour api-contract bench-api ansible wheel packages agents-matrix browser gpu-hardware reference lock

comma := ,
BIN := .venv/bin
STAMP := .venv/installed-from-lock
PYTHON ?= $(shell for each in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$each && break; done)

# Tests of daemons wait as long as they compute, so there is one worker more than processors; more than four at a time
# only wait for each other.
WORKERS ?= $(shell cores=$$(nproc 2>/dev/null || echo 2); test $$cores -lt 4 && echo $$((cores + 1)) || echo 4)

# Whatever asks hypothesis for examples.
PROPERTIES = $(shell grep -rl --include='test_*.py' '^from hypothesis' tests)

help:   ## this list
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/  make \1\t\2/p; s/^\([a-z-]*\):  *## \(.*\)/  make \1\t\2/p' Makefile | sort -u | expand -t 26

setup: $(STAMP)  ## .venv with the locked dependencies; does nothing when it is current

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "haclusterd needs Python 3.11 or newer; none is on PATH (found: $$(python3 -V 2>&1))." \
		"Name one with: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv || { echo "The venv module is missing; on Debian and Ubuntu:" \
		"apt-get install python3-venv" >&2; exit 1; }
	@echo "Preparing .venv, once: a minute or two, most of it for what requirements.lock names ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@# As a line in a .pth file: what setuptools makes else is a program that every process would run at its start.
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--config-settings editable_mode=compat --editable .
	@touch $@

demo: setup  ## a cluster of three nodes on this machine loses one; KEEP=1 leaves it running
	@$(BIN)/python -m haclusterd.entry_points.demo $(if $(KEEP),--keep)

test: setup  ## everything: static checks and all tests, in less than 20 minutes on two cores; WORKERS=1 one after the other
	@$(MAKE) --no-print-directory --jobs=2 static compiled
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

soak: setup  ## all cases and examples of which `make test` runs a sample; ONLY='tests/simulation tests/property'
	@$(MAKE) --no-print-directory compiled
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --hypothesis-profile=whole -o timeout=1200 $(ONLY)

# Hundreds of processes import the program, and each worker all tests; where Python must write no bytecode, each
# would compile them again.
compiled: setup
	@$(BIN)/python -m compileall -q haclusterd
	@PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --collect-only -q > .venv/collected.log || { cat .venv/collected.log; exit 1; }

cost: setup  ## which tests cost most, in processor time: the first fifty files and tests; ONLY='tests/processes tests/unit/cib'
	@$(BIN)/pytest -p tests.cost_of_tests $(or $(ONLY),tests)

quick: setup  ## the tests that take no daemon and little time
	@$(BIN)/pytest -m "not slow and not processes"

lint: static  ## static checks, and the rules of the house
	@$(BIN)/pytest tests/house

static: setup
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache > .venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }

swarm: setup  ## simulated failures, seed after seed; SECONDS=60 or HOURS=24, SEED=1 ONLY=store,gpu,shapes,databases WITHOUT=rule
	@$(BIN)/python -m $(if $(filter store,$(ONLY)),tests.simulation.store_swarm,haclusterd.simulator) swarm \
		--seconds $(or $(SECONDS),60) $(if $(HOURS),--hours $(HOURS)) --seed $(or $(SEED),1) \
		$(if $(filter gpu shapes databases,$(ONLY)),--only $(ONLY)) $(if $(WITHOUT),--without $(WITHOUT))

kill-loop: setup  ## real processes killed, stopped and starved, and their clients' records judged; SECONDS=600 NODES=3 SEED=1
	@$(BIN)/python -m tests.kill_loop --seconds $(or $(SECONDS),600) --nodes $(or $(NODES),3) --seed $(or $(SEED),1) \
		--mode $(or $(MODE),both)

verb-storm: setup  ## random verbs with random arguments by clients that hang up, against live daemons; SECONDS=1200 CLIENTS=4 SEED=1
	@$(BIN)/python -m tests.verb_storm --seconds $(or $(SECONDS),1200) --clients $(or $(CLIENTS),4) --seed $(or $(SEED),1)

conformance: setup  ## Pacemaker's public scheduler cases and random CIBs from ../shared, tag by tag; DIFF=1 shows the differences, TAG=bundle
	@$(BIN)/python -m tests.conformance.public_cases --failing $(if $(DIFF),--diff) $(if $(TAG),--tag $(TAG))

load-corpus: setup  ## other people's CIBs and crm scripts from ../shared, loaded as a running cluster would; ONLY=NAME VERBOSE=1
	@$(BIN)/python -m tests.conformance.loaded_corpus --only '$(ONLY)' $(if $(VERBOSE),--verbose)

round-trips: setup  ## every CIB and crm script of ../shared through crm text, XML and YAML, and past crm_verify; ONLY=NAME VERBOSE=1
	@$(BIN)/python -m tests.conformance.round_trips --only '$(ONLY)' $(if $(VERBOSE),--verbose)

fuzz-scheduler: setup  ## random CIBs, planned by ours and by crm_simulate, and compared; CASES=2000 SEED=1 THEMES=common,nodes,resources
	@$(BIN)/python -m tests.fuzzing.differential --cases $(or $(CASES),2000) --seed $(or $(SEED),1) --themes $(or $(THEMES),common)

bench-gpu: setup  ## CPU time of plans in which every service claims a device; NODES=200 SERVICES=1600
	@$(BIN)/python -m tests.benchmarks.devices --nodes $(or $(NODES),200) --services $(or $(SERVICES),1600)

bench-scheduler: setup  ## CPU time and memory of the scheduler beside crm_simulate's; SIZES=24x600p,32x1000p
	@$(BIN)/python -m tests.benchmarks.scheduler $(if $(SIZES),--sizes $(SIZES))

fuzz-properties: setup  ## the property tests with examples that are new in each round; ROUNDS=5
	@for round in $$(seq $(or $(ROUNDS),5)); do $(BIN)/pytest -n $(WORKERS) --hypothesis-profile=new -m "not processes" $(PROPERTIES) || exit 1; done

mutants: setup  ## safety-relevant lines broken one at a time, and who notices; SWARM=600 (seconds each) SAMPLE=24 (of them) GENERATED=200 SEED=1 ONLY='Replica.*' WRITE=1 (noticed.txt)
	@$(BIN)/python -m tests.mutants --swarm $(or $(SWARM),0) --sample $(or $(SAMPLE),0) --generated $(or $(GENERATED),0) --seed $(or $(SEED),1) \
		--only '$(or $(ONLY),*)' $(if $(WRITE),--write-noticed)

fuzz-journal: setup  ## every cut and flipped bit of the store's files, and a kill at each of its system calls; STEP=1
	@$(BIN)/python -m tests.fuzzing.journal --step $(or $(STEP),1)

fuzz-decoders: setup  ## damaged input for everything that reads what others wrote; SECONDS=60 SEED=1
	@$(BIN)/python -m tests.fuzzing.decoders --seconds $(or $(SECONDS),60) --seed $(or $(SEED),1)

fuzz-input: setup  ## damaged CIBs, crm texts and policies through crm: place, remedy, time, memory; CASES=1000 SEED=1
	@$(BIN)/python -m tests.fuzzing.bad_input --cases $(or $(CASES),1000) --seed $(or $(SEED),1)

agents-matrix: setup  ## stock agents x actions by our executor, in namespaces (root); ONLY='heartbeat:nginx,haclusterd:*' TRIALS=1 (crm agent test)
	@$(BIN)/python -m tests.agents_matrix --only '$(or $(ONLY),*)' $(if $(TRIALS),--trials)

gpu-hardware: setup  ## the watcher of GPUs on a machine with a real one (root): inventory, users, Xid, hangs, cost; SECONDS=60; 77: there is none
	@$(BIN)/python -m tests.gpu_hardware --seconds $(or $(SECONDS),60)

bench-store: setup  ## new leaders, commits and elections of whole daemons; LEADERS=30 COMMITS=600 IDLE=10 (minutes)
	@$(BIN)/python -m tests.benchmarks.store --leaders $(or $(LEADERS),30) --commits $(or $(COMMITS),600) \
		--idle $(or $(IDLE),0)

lab: setup  ## real faults on machines in namespaces (root); FAULTS=200 ONLY='cut-*,crash-dc' NODES=3,5 SEED=1; ONLY=false-alarm MINUTES=30; ONLY='systemd-*'; ONLY='gpu-*'
	@$(BIN)/python -m tests.lab --faults $(or $(FAULTS),0) --only '$(ONLY)' --nodes $(or $(NODES),3$(comma)5) --minutes $(or $(MINUTES),30) \
		--seed $(or $(SEED),1)

bench-failover: setup  ## beside real corosync and Pacemaker (root): outages, forming, cost; RUNS=6 ONLY='crash,*_tuned,form,cost'
	@$(BIN)/python -m tests.benchmarks.failover --runs $(or $(RUNS),6) --only '$(ONLY)' --seed $(or $(SEED),1)

bench-databases: setup  ## databases' primaries lost over and over under writes, beside real Pacemaker (root): acknowledged writes lost and why, two primaries, outage; RUNS=40 ONLY='paf,redis,kill,crash' PEER=no, EQUAL=1 with equal tolerance
	@$(BIN)/python -m tests.databases --runs $(or $(RUNS),1) --only '$(or $(ONLY),*)' --seed $(or $(SEED),1) \
		$(if $(filter no,$(PEER)),--managers haclusterd) $(if $(EQUAL),--equal)

tour: setup  ## docs/tour.md made again: a newcomer's hour, played on machines in namespaces (root)
	@$(BIN)/python -m tests.lab.tour

bench-snapshot: setup  ## many MiB of state as a snapshot: taken, and installed on a voter that lags; MIB=16
	@$(BIN)/python -m tests.benchmarks.large_snapshot --mib $(or $(MIB),16)

bench-large: bench-snapshot  ## the same, and thousands of resources loaded into three real daemons; COUNT=5000 STARTED=100
	@$(BIN)/python -m tests.benchmarks.large_configuration --count $(or $(COUNT),5000) --started $(or $(STARTED),100)

bench-monitors: setup  ## hundreds of resources with frequent monitors on one node: how late they are, what the daemon costs; COUNT=500 INTERVAL=10 SECONDS=120; UNITS=1 (root): systemd units
	@$(BIN)/python -m tests.benchmarks.$(if $(UNITS),unit_)monitors --count $(or $(COUNT),500) --interval-s $(or $(INTERVAL),10) --seconds $(or $(SECONDS),120)

api-contract: setup  ## every path of the REST interface with generated arguments, held against its OpenAPI document; CASES=8 SEED=1
	@$(BIN)/python -m tests.api_contract --cases $(or $(CASES),8) --seed $(or $(SEED),1)

bench-api: setup  ## status over many connections and event streams beside it, on one node, and failovers during that; SECONDS=600 RATE=1000 CONNECTIONS=200 STREAMS=200
	@$(BIN)/python -m tests.benchmarks.api_load --seconds $(or $(SECONDS),600) --rate $(or $(RATE),1000) \
		--connections $(or $(CONNECTIONS),200) --streams $(or $(STREAMS),200)

browser: setup  ## the web page in a headless Chromium over real daemons (Debian: installs chromium, as root); PICTURES=DIR AXE=axe.min.js
	@command -v chromium chromium-browser google-chrome >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null \
		|| apt-get install --quiet --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null
	@$(BIN)/python -m tests.browser $(if $(PICTURES),--pictures $(PICTURES)) $(if $(AXE),--axe $(AXE))

ansible: setup  ## the Ansible collection, linted, and run on real daemons: check mode, changes, no second change; exit 77: no Ansible to be had
	@$(BIN)/python -m tests.ansible_collection

wheel: setup  ## dist/haclusterd-*.whl
	@$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

packages: setup  ## dist/*.deb and dist/*.rpm; RELEASE=1 PACKAGER='NAME <ADDRESS>'; Debian: apt-get install rpm
	@$(if $(PACKAGER),PACKAGER='$(PACKAGER)') $(BIN)/python -m packages.build --release $(or $(RELEASE),1)

reference: setup  ## the pages of docs that are made from tables of the program
	@$(BIN)/python docs/reference/render.py
	@$(BIN)/python docs/reference/render_man.py
	@$(BIN)/python docs/design/render_rules.py

lock: setup  ## requirements.lock made again from pyproject.toml
	@$(PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet pip-tools
	@build/lock/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --upgrade \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --extra dev --output-file requirements.lock pyproject.toml
