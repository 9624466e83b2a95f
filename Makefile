# ClusterFit. `make run` starts the app, `make test` runs every check. Both set up .venv/ first.

PYTHON ?= python3
PORT ?= 8501
WORKERS ?= 2
PY := .venv/bin/python
READY := .venv/.ready
PEERS := .venv/peers

.PHONY: setup run test bench lint types

setup: $(READY)

# A private environment with exactly the packages of the lock, every file checked by its hash.
# The system's pip fills it, so Debian's python3 and python3-pip are enough; python3-venv will do too.
$(READY): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || { \
	  echo "ClusterFit needs Python 3.11, 3.12 or 3.13, and '$(PYTHON)' is not one of them."; \
	  echo "Name another one: make setup PYTHON=python3.12"; exit 1; }
	@if $(PYTHON) -m pip --version >/dev/null 2>&1; then \
	  $(PYTHON) -m venv --without-pip .venv && pip="$(PYTHON) -m pip --python $(PY)"; \
	elif $(PYTHON) -c 'import ensurepip' >/dev/null 2>&1; then \
	  $(PYTHON) -m venv .venv && pip="$(PY) -m pip"; \
	else \
	  echo "'$(PYTHON)' has no pip. On Debian and Ubuntu: sudo apt-get install python3-pip"; exit 1; \
	fi && echo "Setting up .venv (once; about a minute)" && \
	$$pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

# The port is tried first, so that a taken one is said in a sentence.
run: $(READY)
	@case "$(PORT)" in ''|*[!0-9]*) echo "PORT is a number, not '$(PORT)': make run PORT=8502"; exit 1;; esac
	@$(PY) -c 'import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", $(PORT)))' 2>/dev/null || { \
	  echo "Port $(PORT) is taken by another program, or not allowed. Use another one: make run PORT=$$(($(PORT) + 1))"; exit 1; }
	@exec $(PY) -m streamlit run app.py --server.address 127.0.0.1 --server.port $(PORT) --browser.serverAddress 127.0.0.1

# Everything: style, types, then the tests of the engine, the pages and the browser.
# Each worker starts its own app and browser; `make test WORKERS=0` runs in one process.
test: lint types
	@$(PY) -m pytest -n $(WORKERS) --dist loadfile

bench: $(READY) $(PEERS)/.ready
	@PYTHONPATH=$(PEERS) $(PY) -m benchmarks

# The peers that the benchmarks compare with stand beside the environment, not in it. Without a
# network the benchmarks run without them and say so.
$(PEERS)/.ready: requirements-bench.lock $(READY)
	@$(PYTHON) -m pip --python $(PY) install --quiet --disable-pip-version-check --no-deps \
	  --require-hashes --target $(PEERS) --upgrade -r requirements-bench.lock \
	  && touch $@ || echo "The peers could not be installed; the benchmarks run without them."

lint: $(READY)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: $(READY)
	@$(PY) -m mypy
