# Every target does its own set-up: Python 3.11+, pip and make are all a fresh machine needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One more than there are cores: tests wait for servers as often as they compute.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(len(os.sched_getaffinity(0)) + 1)')

SEEDS ?= 1000..1999

.PHONY: help run demo cluster test test-cluster simulate torture torture-cluster pipeline-kills interop static check format bench bench-storage bench-broker bench-cluster bench-columnar bench-wire \
	bench-compaction bench-tables bench-validation bench-peers bench-growth bench-spark clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 18

$(READY): pyproject.toml hatch_build.py src/tidelog/records/_walk.c requirements/dev.txt requirements/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tidelog needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements/constraints.txt -e '.[avro,cluster,columnar,spark,table]' -r requirements/dev.txt
	@touch $@

run: $(READY)  ## start a broker on 127.0.0.1:9092, data in ./tidelog-data; Ctrl-C stops it
	@$(BIN)/tidelog serve

demo: $(READY)  ## a broker, a stream of events and a Spark pipeline at work; Ctrl-C ends it
	@$(BIN)/tidelog demo

cluster: $(READY)  ## three brokers over PostgreSQL and a directory (STORE=s3: an S3 server), under load; kill one and watch
	@$(BIN)/python -m tests.support.cluster_demo $(if $(filter s3,$(STORE)),--s3)

# Compiled once, not by every test that is the first to need them.
KERNELS := $(BIN)/python -m tidelog.records.loading

test: $(READY)  ## run every test
	@$(KERNELS)
	$(BIN)/python -m pytest -n $(WORKERS) -q

torture: $(READY)  ## kill the broker under load for TORTURE_SECONDS (600) and check everything
	$(BIN)/python -m tests.torture.run

torture-cluster: $(READY)  ## the same for three brokers, PostgreSQL and a directory (STORE=s3: an S3 server)
	$(BIN)/python -m tests.torture.cluster

pipeline-kills: $(READY)  ## kill runs of a pipeline at every step; takes about half an hour
	@$(KERNELS)
	TIDELOG_PIPELINE_KILLS=1 $(BIN)/python -m pytest -q tests/spark/test_pipeline_kills.py

test-cluster: $(READY)  ## all tests of the cluster, and those of clients and gateways over it; takes half an hour
	TIDELOG_TEST_CLUSTER=1 $(BIN)/python -m pytest -n $(WORKERS) -q tests/cluster tests/simulation tests/storage/shared tests/postgres tests/metadata tests/broker/membership tests/gateways tests/e2e tests/node tests/torture/test_cluster.py

simulate: $(READY)  ## simulate clusters with faults for SEEDS (1000..1999); prints the seed of a failure
	$(BIN)/python -m tests.simulation.run --seeds $(SEEDS)

interop: $(READY)  ## clients of other languages and Kafka's tools; needs Java, Maven, Go and their registries
	TIDELOG_INTEROP=1 $(BIN)/python -m pytest -q tests/interop

static: $(READY)  ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: static  ## the same, and the tests that are quick
	@$(KERNELS)
	$(BIN)/python -m pytest -n $(WORKERS) -q -m "not slow"

format: $(READY)  ## put the source into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: bench-storage bench-broker bench-columnar bench-wire bench-compaction bench-tables bench-spark  ## run every benchmark but those with peers

bench-storage: $(READY)  ## storage speed against the raw disk; the last line is JSON
	$(BIN)/python -m benchmarks.storage

bench-broker: $(READY)  ## a broker process under load; the last line is JSON
	$(BIN)/python -m benchmarks.broker

bench-cluster: $(READY)  ## a cluster beside the raw store, PostgreSQL and one broker; the last line is JSON
	$(BIN)/python -m benchmarks.cluster

bench-columnar: $(READY)  ## record batches to Arrow columns and back
	$(BIN)/python -m benchmarks.columnar

bench-wire: $(READY)  ## microseconds to decode and encode the hot messages
	$(BIN)/python -m benchmarks.wire

bench-compaction: $(READY)  ## records a second that compaction goes through
	$(BIN)/python -m benchmarks.compaction

bench-tables: $(READY)  ## building tables of keys, and asking them
	$(BIN)/python -m benchmarks.tables

bench-validation: $(READY)  ## what checking produced batches costs
	$(BIN)/python -m benchmarks.validation

bench-peers: $(READY)  ## Tidelog beside Kafka and others; needs a C compiler and the network; takes up to an hour
	$(BIN)/python -m benchmarks.peers

bench-growth: $(READY)  ## how cost grows with partitions, connections, data and consumers
	$(BIN)/python -m benchmarks.peers.growth

bench-spark: $(READY)  ## reading and writing topics with Spark; the last line is JSON
	$(BIN)/python -m benchmarks.spark

clean:  ## remove what the targets made
	rm -rf $(VENV) sample-log .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
