# Two commands do everything: `make demo` and `make test`. The rest is for developers.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The CPU build of torch: PyPI's own build for Linux brings gigabytes of CUDA packages.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt

# WeightWatcher is what the audit is timed against, not something obverse needs: an environment of its own.
WATCHER := .venv-weightwatcher
WATCHER_PIP := $(WATCHER)/bin/python -m pip --disable-pip-version-check

# An empty environment that the wheel is tried in.
TRIAL := .venv-release
TRIAL_PIP := $(TRIAL)/bin/python -m pip --disable-pip-version-check

.PHONY: help demo test test-all fuzz browser cover release style lint docs experiments-quick zoo claims architectures bench bench-memorize bench-weightwatcher clean

help:
	@echo "make demo      train with and without shadows on embedded data, write one page"
	@echo "make test      lint, types, tests"
	@echo "make test-all  the slow tests too"
	@echo "make fuzz      hostile files of every format, a quarter of an hour; figures in benchmarks/results/fuzz.json"
	@echo "make browser   install Chromium and its driver (Debian, Ubuntu), for the tests of pages"
	@echo "make docs      rebuild tables and figures from experiments/results, then the site in docs/_build/html"
	@echo "make experiments-quick  every training experiment in small, in minutes; figures in runs/quick and docs"
	@echo "make zoo       public nets: get them (1.2 GB), audit all layers; results in experiments/zoo/results"
	@echo "make claims    run every claim in full (half an hour), publish verdicts in experiments/claims/results"
	@echo "make architectures  shadows of public architectures; results in experiments/architectures/results"
	@echo "make bench     speed as ratios; results in benchmarks/results"
	@echo "make bench-memorize  a data set memorized without training, against training; needs CIFAR-10"
	@echo "make bench-weightwatcher  the audit timed beside WeightWatcher, in $(WATCHER)"
	@echo "make cover     share of the code that make test runs; figure in benchmarks/results/coverage.json"
	@echo "make release   build sdist and wheel, check both, try the wheel in an empty environment"
	@echo "make clean     remove what these commands made"

$(VENV)/made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "expected Python 3.11 or newer; got %s; set PYTHON=…" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	touch $@

# torch first, by its exact version: any other package would be free to choose a build of it. $(1) is a pip.
define install_torch
@$(1) install --quiet --retries 1 --extra-index-url $(TORCH_INDEX) --constraint constraints.txt torch 2>&1 | grep -v '^WARNING' || true
$(call refuse_cuda,$(1))
endef

define refuse_cuda
@! $(1) list 2>/dev/null | grep -i '^nvidia' || { echo "expected the CPU build of torch; got CUDA packages; set TORCH_INDEX to an index of CPU builds"; exit 1; }
endef

$(VENV)/torch: $(VENV)/made constraints.txt
	@echo "installing torch and obverse into $(VENV) (a few minutes the first time)"
	$(call install_torch,$(PIP))
	@$(BIN)/python -c 'import torch; print("torch", torch.__version__)'
	@touch $@

$(VENV)/installed: $(VENV)/torch pyproject.toml constraints.txt
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/developer: $(VENV)/installed
	@$(INSTALL) --editable '.[dev]'
	@touch $@

demo: $(VENV)/installed
	@rm -rf demo
	$(BIN)/obverse compare --data digits --hidden 200,200 --epochs 20 --seeds 3 --out demo
	@$(BIN)/obverse sample demo
	@echo "Open the page in a browser: $(CURDIR)/demo/report.html"

style: $(VENV)/developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style
	$(BIN)/mypy

# The types are checked beside the tests, whose workers leave a core idle at their start and their end.
test: style
	@$(BIN)/mypy >$(VENV)/types.txt 2>&1 & types=$$!; \
	$(BIN)/pytest -m "not slow" -n auto --dist worksteal; tests=$$?; \
	wait $$types; types=$$?; echo "mypy: $$(cat $(VENV)/types.txt)"; rm $(VENV)/types.txt; exit $$((tests + types))

fuzz: $(VENV)/developer
	PYTHONPATH=tests:benchmarks:. $(BIN)/python -m fuzz

# The only command that changes the machine, and only when asked to.
browser:
	@if { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null && \
	  PATH="$$PATH:/usr/lib/chromium-browser:/usr/lib/chromium" command -v chromedriver >/dev/null; then \
	  echo "Chromium and chromedriver are installed."; \
	elif command -v apt-get >/dev/null; then \
	  if [ "$$(id -u)" = 0 ]; then root=; else root=sudo; fi; \
	  $$root apt-get update && $$root apt-get install -y chromium chromium-driver; \
	else \
	  echo "expected apt-get (Debian, Ubuntu); got none; install Chromium (or Chrome) and chromedriver with this system's own package manager, so that both are on the PATH"; \
	  exit 1; \
	fi

# Public architectures to try shadows on, without their dependencies: these would replace torch by a CUDA build.
$(VENV)/architectures: $(VENV)/developer
	@$(PIP) install --quiet --no-deps pytorchcv==0.0.74 monai==1.6.1
	$(call refuse_cuda,$(PIP))
	@touch $@

test-all: lint $(VENV)/architectures
	$(BIN)/pytest -n auto --dist worksteal

architectures: $(VENV)/architectures
	$(BIN)/python -m experiments.architectures.run

# Sphinx, its Markdown and its theme: what the site needs beyond obverse itself.
$(VENV)/documentation: $(VENV)/installed
	@$(INSTALL) --editable '.[docs]'
	@touch $@

# The pages first, then the site: offline, with warnings as errors.
docs: $(VENV)/documentation
	$(BIN)/python -m experiments docs
	$(BIN)/sphinx-build -q -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "Open the site in a browser: $(CURDIR)/docs/_build/html/index.html"

experiments-quick: $(VENV)/installed
	$(BIN)/python -m experiments quick
	$(MAKE) docs

# The readers of all their formats, but nothing of theirs is run.
zoo: $(VENV)/developer
	$(BIN)/python -m experiments.zoo.run --jobs 2

claims: $(VENV)/installed
	$(BIN)/python -m experiments.claims.run

bench: $(VENV)/installed
	$(BIN)/python benchmarks/run_all.py

bench-memorize: $(VENV)/installed
	$(BIN)/python benchmarks/memorize_sgd.py

# obverse without its dependencies: torch and WeightWatcher bring the few of them that an audit needs.
$(WATCHER)/installed: constraints.txt pyproject.toml
	@echo "installing torch, WeightWatcher and obverse into $(WATCHER) (a few minutes the first time)"
	@$(PYTHON) -m venv $(WATCHER)
	$(call install_torch,$(WATCHER_PIP))
	@$(WATCHER_PIP) install --quiet --constraint constraints.txt weightwatcher==0.7.7
	@$(WATCHER_PIP) install --quiet --constraint constraints.txt --no-deps --editable .
	$(call refuse_cuda,$(WATCHER_PIP))
	@$(WATCHER)/bin/python -c 'import torch; print("torch", torch.__version__)'
	@touch $@

bench-weightwatcher: $(WATCHER)/installed
	$(WATCHER)/bin/python benchmarks/weightwatcher_time.py
	$(WATCHER)/bin/python benchmarks/weightwatcher_decompose.py

# Under coverage Python is slower by half: bounds on times are judged by `make test`, not here.
cover: $(VENV)/developer
	$(BIN)/pytest -m "not slow" -n auto --dist worksteal --cov --cov-report=json:.coverage.json
	$(BIN)/python benchmarks/cover.py .coverage.json

# Both archives from the source, the wheel from the sdist, as a package index would; then the wheel alone, in an
# environment that has never seen this directory. Nothing is uploaded.
release: $(VENV)/developer
	@rm -rf dist $(TRIAL)
	$(BIN)/python -m build
	$(BIN)/python .ci/check_archives.py dist
	$(PYTHON) -m venv $(TRIAL)
	$(call install_torch,$(TRIAL_PIP))
	@$(TRIAL_PIP) install --quiet --constraint constraints.txt dist/*.whl
	cd $(TRIAL) && bin/obverse --version && bin/obverse doctor
	$(PYTHON) .ci/try_examples.py $(TRIAL)/bin
	@rm -rf $(TRIAL)
	@ls -l dist

clean:
	rm -rf $(VENV) $(WATCHER) $(TRIAL) dist .coverage .coverage.json demo docs/_build .screenshots .mypy_cache .ruff_cache .pytest_cache
