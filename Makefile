# ClusterFit. `make run` starts the app, `make test` runs every check. Both set up .venv/ first.

PYTHON ?= python3
PORT ?= 8501
PY := .venv/bin/python
READY := .venv/.ready

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

run: $(READY)
	@$(PY) -c 'import socket; raise SystemExit(socket.socket().connect_ex(("127.0.0.1", $(PORT))) == 0)' || { \
	  echo "Port $(PORT) is taken by another program. Use another one: make run PORT=8502"; exit 1; }
	@echo "ClusterFit: http://127.0.0.1:$(PORT) (Ctrl+C stops it)"
	@exec $(PY) -m streamlit run app.py --server.address 127.0.0.1 --server.port $(PORT)

# Everything: style, types, then the tests of the engine, the pages and the browser.
test: lint types
	@$(PY) -m pytest

bench: $(READY)
	@$(PY) -m benchmarks

lint: $(READY)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: $(READY)
	@$(PY) -m mypy
