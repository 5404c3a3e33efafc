# make run   – set up the core and run the simulator on a shipped map with two robots
# make test  – set up everything and run all tests
# Also: make test-layers | test-aarch64 | test-learning | test-long | train | coverage | mutants | kernels | lint | lint-fast | fuzz | bench | web | venv | lock | audit | release | dist | maps | compatibility | docs | docs-serve | clean

PYTHON ?= python3
VENV := .venv
# on Windows (untried; with make, and the sh that comes with Git) environments are laid out in another way
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
EXE := .exe
else
BIN := $(VENV)/bin
EXE :=
endif
ARGS ?=

.PHONY: run kernels test test-aarch64 test-layers test-learning test-long train coverage mutants venv lock lint fuzz dist bench bench-peers audit maps compatibility web peers clean
.DEFAULT_GOAL := run

$(BIN)/python$(EXE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "botyard needs Python 3.11 or later, as $(PYTHON); try: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "Python could not make a virtual environment; on Debian and Ubuntu install python3-venv, then run make again"; exit 1; }

# the core: what a user gets from "pip install botyard", and the compiler of the kernels that a wheel brings along
$(VENV)/.core: pyproject.toml | $(BIN)/python$(EXE)
	@$(BIN)/python tools/install.py --editable ".[jit]"
	@command -v cc >/dev/null || $(BIN)/python tools/install.py "ziglang>=0.13" || true
	@touch $@

# every extra but the torch-based training example, and the tools of the developers
# in the very versions that the lock file names, and no other files of them; users get what the ranges in pyproject.toml allow
$(VENV)/.all: pyproject.toml requirements-dev.lock | $(BIN)/python$(EXE)
	@$(BIN)/python tools/install.py --require-hashes --requirement requirements-dev.lock
	@$(BIN)/python tools/install.py --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.core

# the lock file anew: keeps what it names where that still fits the ranges; LOCK_ARGS=--upgrade for the newest of everything
lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.9,<1"
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --extra all --extra dev --generate-hashes --no-strip-extras --no-emit-index-url \
	  --no-emit-find-links --custom-compile-command "make lock" --output-file requirements-dev.lock $(LOCK_ARGS) pyproject.toml
	for name in jazzy kilted colcon; do .venv-lock/bin/uv pip compile --quiet --python-version 3.11 --python-platform linux --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --custom-compile-command "make lock" --output-file tests/ros/wheels/$$name.lock $(LOCK_ARGS) tests/ros/wheels/$$name.in || exit 1; done

venv: $(VENV)/.all

# the page; without a Node on the system one is taken from the Python package index
web: $(VENV)/.core
	@$(BIN)/python tools/build_web.py --install-node

# the library of kernels, when their sources have changed; without a linker they are compiled at the first start
kernels: $(VENV)/.core
	@$(BIN)/python -m tools.kernels --if-possible

# the kernels that a run needs at its start; others are compiled when they are first used
.PHONY: first-kernels
first-kernels: $(VENV)/.core
	@$(BIN)/python -m tools.kernels --if-possible --first-run

run: web first-kernels
	$(BIN)/botyard run --map office --robot p3dx --robot amigo:bob --controller wander $(ARGS)

# programs of the system that tests talk to: a browser and a display for it, and ROS 1
ROS1 := python3-roslaunch python3-rosmaster python3-rostopic python3-rosservice python3-rosnode python3-rospy python3-rosbag python3-rosparam \
  python3-rosmsg python3-dynamic-reconfigure python3-tf2-ros python3-tf2-msgs python3-rosgraph-msgs python3-nav-msgs python3-sensor-msgs \
  python3-diagnostic-msgs python3-std-srvs ros-std-srvs ros-nav-msgs ros-sensor-msgs ros-std-msgs ros-geometry-msgs ros-tf2-msgs ros-rosgraph-msgs

# a peer on the middleware of ROS 2, compiled by its tests, and the means to give it a network of its own
ROS2 := g++ libfastrtps-dev libfastcdr-dev iproute2 util-linux python3-dev python3-venv

# Without root, tests of absent peers are skipped; in CI an absent peer is a failure.
HAS_PEERS = ( PATH="$$PATH:/usr/sbin"; for program in chromium mosquitto Xvfb systemd-analyze g++ ip unshare; do \
  command -v $$program >/dev/null || exit 1; done; \
  /usr/bin/python3 -c 'import rospy, diagnostic_msgs' 2>/dev/null && [ -d /usr/include/fastdds ] )

peers: $(VENV)/.all
	@$(HAS_PEERS) || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "peers: installing Chromium, Xvfb, Mosquitto, ROS 1 and Fast DDS from Debian's packages (a minute or two)" && apt-get -qq update \
	      && apt-get -qq install -y --no-install-recommends chromium xvfb mosquitto systemd $(ROS1) $(ROS2) >/dev/null; \
	  fi; $(HAS_PEERS); } \
	  || { echo "peers: Chromium, Xvfb, Mosquitto, systemd, ROS 1 or Fast DDS is absent and cannot be installed"; \
	  [ -z "$$CI" ] && echo "peers: tests that need them are skipped"; }
	@$(BIN)/python tools/build_web.py --install-node packages tests/ros/npm
	@$(BIN)/python tools/ros2_peers.py .venv-ros2 || { [ -z "$$CI" ] && echo "peers: tests with ROS 2's wheels are skipped"; }
	@[ -d .venv-zenoh/lib ] || { $(PYTHON) -m venv .venv-zenoh && .venv-zenoh/bin/python tools/install.py "zenoh-ros2-sdk==0.1.8"; }
	@[ -d .venv-zenoh/lib/python*/site-packages/irsim ] || .venv-zenoh/bin/python tools/install.py --no-deps "ir-sim==2.12.0"

# Matrices of tests are small, and all workers share the cores.
export OPENBLAS_NUM_THREADS ?= 1

# Many tests wait for real programs most of the time: with one worker more than there are cores the whole takes a third less.
export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell expr `nproc 2>/dev/null || echo 2` + 1)

# They run with the library of kernels, on all cores; the engine's once more with what Numba compiles for this machine, and once more without
# a compiler: real tracebacks, coverage, and proof that all three give the same results.
test: $(VENV)/.all web peers
	$(BIN)/python tools/build_web.py --install-node test
	$(BIN)/python -m tools.kernels --if-possible
	$(BIN)/botyard warmup
	$(BIN)/python -m pytest -n auto --dist loadgroup $(ARGS)
	BOTYARD_KERNELS=jit $(BIN)/botyard warmup
	BOTYARD_KERNELS=jit $(BIN)/python -m pytest -n auto tests/engine tests/devices tests/determinism $(ARGS)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n auto -m "not slow_without_jit" tests/engine tests/devices tests/determinism $(ARGS)

# What lies below the servers, and its tests: no browser, no peers, no Node. For machines on which "make test" cannot run, and for coverage.
LAYERS := leaves native model formats protocols engine devices controllers determinism
BELOW := $(LAYERS:%=tests/%) tests/test_portable_numbers.py tests/test_api.py tests/test_api_errors.py tests/test_state.py tests/test_journal.py

test-layers: $(VENV)/.all
	$(BIN)/python -m pytest -n auto --dist loadgroup $(BELOW) $(ARGS)

# which lines and branches of these layers their tests carry out; fails below the floor that pyproject.toml sets
coverage: $(VENV)/.all
	$(BIN)/python -m pytest -n auto --dist loadgroup $(BELOW) --cov --cov-report=term:skip-covered $(ARGS)

# small errors are put into the code, one at a time: do the tests notice? make mutants MUTANTS=300 SEED=2 ARGS="--minutes 60"
MUTANTS ?= 3000
SEED ?= 1
mutants: $(VENV)/.all
	$(BIN)/python -m tools.mutants --count $(MUTANTS) --seed $(SEED) $(ARGS)

# the same for each row of the feature table: do the tests that it names notice? make mutants-of-rows ARGS="MOT-002 --each 5"
.PHONY: mutants-of-rows
mutants-of-rows: $(VENV)/.all
	$(BIN)/python -m tools.mutants.rows $(ARGS)

# the same results on another processor, emulated (Debian, root): kernels compiled for aarch64, on the scenes of the digests
test-aarch64: $(VENV)/.all
	tools/aarch64.sh $(BIN)/python

# runs of simulations, each done again from its journal: digests of every step must be equal; and ten minutes of DDS participants that come and go
test-long: $(VENV)/.all
	BOTYARD_JOURNAL=1 BOTYARD_CHURN_S=600 $(BIN)/python -m pytest -n auto tests/controllers tests/devices tests/protocols tests/servers tests/traffic tests/test_api.py $(ARGS)

# environments with stable-baselines3 and RLlib, which bring torch: in an environment of its own
test-learning:
	$(PYTHON) -m venv .venv-learning
	.venv-learning/bin/python -m pip install --quiet --disable-pip-version-check -e ".[learning,jit]" stable-baselines3 "ray[rllib]>=2.50,<3" pytest hypothesis
	.venv-learning/bin/python -m pytest tests/learning/test_stable_baselines.py tests/learning/test_rllib.py $(ARGS)

# the example of docs/howto/learning.md: fails if fewer goals are reached than that page states
train: $(VENV)/.all
	$(BIN)/python examples/learning/train.py .training $(ARGS)

lint: lint-fast
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet --no-progress .github/workflows
	$(BIN)/python tools/build_web.py --install-node check

# the part of lint that takes seconds; .pre-commit-config.yaml runs the same before each commit
.PHONY: lint-fast
lint-fast: $(VENV)/.all
	$(BIN)/ruff check src tests bench examples ros tools hatch_build.py
	$(BIN)/ruff format --check src tests bench examples ros tools hatch_build.py
	$(BIN)/python -m tools.prose
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/wish.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/python tools/web_types.py --check
	$(BIN)/python tools/web_palette.py --check

# inputs that nobody has tried yet, for some minutes: make fuzz MINUTES=30
MINUTES ?= 5
fuzz: $(VENV)/.all
	$(BIN)/python tools/fuzz.py --minutes $(MINUTES) $(ARGS)

# the other simulators of the comparison, for "make bench"; in an environment of their own
bench-peers:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check "navground>=0.7" "ir-sim>=2.12" pyyaml

bench: $(VENV)/.all
	$(BIN)/python -m bench $(ARGS)

# known weaknesses of what is installed; asks the network, so it is not a part of CI
audit: $(VENV)/.all
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	.venv-audit/bin/pip-audit --path "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" --skip-editable

# the wheel and the source archive, in dist, checked by twine, by check-wheel-contents and by what users need; BOTYARD_TARGET=linux-aarch64
# makes the wheel of another platform, and KEEP=1 adds it to what is there
dist: $(VENV)/.all web .venv-dist/bin/python
	[ -n "$(KEEP)" ] || rm -rf dist
	$(BIN)/python -m hatchling build
	.venv-dist/bin/python -m twine --no-color check --strict dist/*
	.venv-dist/bin/check-wheel-contents dist/*.whl
	$(BIN)/python -m tools.distcheck dist

.venv-dist/bin/python:
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check "twine>=6,<8" "check-wheel-contents>=0.6,<1" "cyclonedx-bom>=7,<8"

# the wheel in clean environments of all Pythons that are there; a client drives a robot in each
.PHONY: dist-install sbom
dist-install:
	$(BIN)/python -m tools.distcheck dist --install

# what an installation of the wheel consists of, in CycloneDX: dist/botyard.cdx.json
sbom: .venv-dist/bin/python
	rm -rf .venv-sbom && $(PYTHON) -m venv .venv-sbom
	.venv-sbom/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	.venv-dist/bin/cyclonedx-py environment --output-reproducible --output-file dist/botyard.cdx.json .venv-sbom/bin/python

# what a release needs is there: version, changelog, a clean tree, lint, true docs; then the files of the release, in dist
.PHONY: release
release: $(VENV)/.all
	$(BIN)/python tools/release.py
	$(MAKE) lint
	$(BIN)/python -m pytest -q tests/test_docs.py tests/test_compatibility.py tests/test_security.py tests/test_lock.py tests/test_release.py
	$(MAKE) dist
	@echo "release: ready; now: git tag v$$($(BIN)/python -c 'import botyard; print(botyard.__version__)'), and upload dist"

# the site of docs/, in site/VERSION; a warning or a broken link fails
.PHONY: docs docs-serve
docs: $(VENV)/.all
	$(BIN)/python -m tools.docsite build $(ARGS)

# the same on http://127.0.0.1:8008, built again when a page changes
docs-serve: $(VENV)/.all
	$(BIN)/python -m tools.docsite serve $(ARGS)

# the pictures in docs/images, from the program itself: screenshots of the page by Chromium, and pictures by Python
.PHONY: pictures
pictures: web peers
	$(BIN)/python -m tools.page_pictures $(ARGS)
	$(BIN)/python -m tools.render_pictures

maps: $(VENV)/.core
	$(BIN)/python tools/author_maps.py

compatibility: $(VENV)/.all
	$(BIN)/python tools/compatibility.py
	$(BIN)/python tools/ros_reference.py
	$(BIN)/python tools/control_reference.py
	$(BIN)/python tools/interfaces_reference.py
	$(BIN)/python -m tools.ros_packages

clean:
	rm -rf web/node_modules src/botyard/ui/static $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .hypothesis-fuzz .mutants .coverage dist site .docs-cache
	find src tests -name __pycache__ -prune -exec rm -rf {} +
