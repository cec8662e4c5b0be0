# Hands-On Multi-GPU Training. `make book` sets everything up and builds the pages; `make help` lists the rest.
#
#   D2LMGPU_PROFILE=quick|full|test  how much data and how many epochs (default: quick without a GPU)
#   D2LMGPU_DEVICES=gpu|cpu|gpu:N|cpu:N    which devices (default: the GPUs, else one a CPU core)
#   CHAPTER=chapters/...ipynb        the chapter for `make run`

# make reads such a checkout, of Git for Windows, and bash does not.
ifneq (,$(shell grep "$$(printf '\r')$$" tools/setup.sh))
$(error The lines of this checkout end as on Windows (CRLF), and no script of it runs. Clone it anew, \
in WSL: .gitattributes keeps the ends of lines. Or, if you want to keep changes that you have made: \
git grep -Ilz $$'\r' | xargs -0 sed -i 's/\r$$//')
endif

PYTHON := .venv/bin/python
CACHE := $(CURDIR)/.cache

# Whatever the tools would keep in the home folder stays in this one.
export PIP_CACHE_DIR := $(CACHE)/pip
export NPM_CONFIG_CACHE := $(CACHE)/npm
export XDG_CACHE_HOME := $(CACHE)
export XDG_DATA_HOME := $(CACHE)/share
export XDG_STATE_HOME := $(CACHE)/state
export IPYTHONDIR := $(CACHE)/ipython
export JUPYTER_CONFIG_DIR := $(CACHE)/jupyter/config
export JUPYTER_DATA_DIR := $(CACHE)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(CACHE)/jupyter/runtime
export MPLCONFIGDIR := $(CACHE)/matplotlib
export PLAYWRIGHT_BROWSERS_PATH := $(CACHE)/playwright
export MXNET_HOME := $(CACHE)/mxnet
# pip asks rustc for its version, and rustup then makes a folder of its own.
export RUSTUP_HOME := $(CACHE)/rustup

# Temporary files are in /var/tmp where their own folder cannot be written, or nothing runs from it, and in this folder if that is
# no better. It is tried last, for its name may be too long for a socket: a path of 107 bytes.
USABLE := t=$$(mktemp -d) && echo '\#!/bin/sh' >$$t/run && chmod +x $$t/run && $$t/run; s=$$?; rm -rf $$t; exit $$s
ifneq ($(shell ($(USABLE)) >/dev/null 2>&1 && echo usable),usable)
export TMPDIR := $(if $(shell export TMPDIR=/var/tmp; ($(USABLE)) >/dev/null 2>&1 && echo usable),/var/tmp,$(CACHE)/tmp)
$(shell mkdir -p $(CACHE)/tmp)
endif
# Lines of two jobs are kept apart by files in /tmp, without which GNU make 4.3 crashes.
JOBS := -j3 $(if $(shell t=$$(mktemp -p /tmp 2>/dev/null) && rm $$t && echo usable),-Oline)

# A path as one word of the shell, whatever is in it.
quoted = '$(subst ','\'',$(1))'

# The suite sees nothing else of the shell from which it is started; set-up keeps all of it.
CACHES := PIP_CACHE_DIR NPM_CONFIG_CACHE XDG_%_HOME IPYTHONDIR JUPYTER_%_DIR MPLCONFIGDIR PLAYWRIGHT_BROWSERS_PATH MXNET_HOME RUSTUP_HOME
SEEN := $(sort $(filter PATH HOME LANG CI TMPDIR OPENBLAS_% $(CACHES),$(.VARIABLES)))
PYTEST := env -i $(foreach name,$(SEEN),$(name)='$($(name))') $(PYTHON) -m pytest

# Two of these at once in one folder would write the same files.
ALONE := $(PYTHON) tools/folder_lock.py

# Rooms of tests whose processes are many or live long: a lane each, the longest first.
LANES := $(addprefix test-,process package hub course check browser lab explain hosted)
ROOMS := $(filter-out test-package test-hub,$(LANES))
# Each framework in a process of its own.
FRAMEWORKS := test-torch test-mxnet
# Of the tests on hosts, a worker each at once.
LONGEST := $(foreach name,failures slurm_jobs breaking,tests/cluster/test_$(name).py)

# Of each room of tests the cheap files that catch most. Which rooms have none, and why: tests/test_quick.py.
QUICK := \
    test_backend.py test_backends_agree.py test_cli.py test_encoding.py test_hosted_notebook.py \
    test_maintainer_pages.py test_processes.py test_public_functions.py test_quick.py test_rooms.py \
    browser/test_chart_page.py \
    check/test_check.py check/test_generators.py check/test_rows.py \
    collectives/test_collectives.py \
    costmodel/test_costmodel.py costmodel/test_fit.py costmodel/test_forecast.py \
    course/test_breaking_account.py course/test_explorers.py course/test_messages.py \
    data/test_data.py data/test_files.py data/test_loader.py data/test_refused_files.py \
    dropin/test_dropin.py \
    explain/test_against.py \
    figures/test_explorer.py figures/test_svg.py figures/test_table.py figures/test_update.py \
    hub/test_accounts.py hub/test_gpu_slots.py hub/test_settings.py \
    lab/test_cell.py lab/test_live.py lab/test_model.py lab/test_wire.py lab/test_view.py \
    machine/test_devices.py machine/test_profiles.py \
    memory/test_allocator.py memory/test_peaks.py \
    notebooks/test_chapters.py notebooks/test_rules.py notebooks/test_speed.py \
    predictions/test_prediction.py \
    process/test_ddp_parity.py process/test_frames.py process/test_lanes.py process/test_errors.py \
    published/test_speedups.py \
    records/test_compare.py records/test_run.py records/test_steady.py records/test_store.py \
    setup/test_dependencies.py setup/test_pins.py \
    training/test_kernels.py training/test_steadiness.py \
    watch/test_annotations.py watch/test_progress.py
QUICK_BACKENDS := test_parity.py test_pieces.py

# What takes hours, in this order.
SOAKS := $(addprefix soak-,chapters browser hub arguments marked exercises process cluster check explain pages hosted machines)

.DEFAULT_GOAL := help
.PHONY: help setup book serve lab lab-app hub hub-class run quick lint-text test all-tests test-frameworks test-hub test-package $(ROOMS) $(FRAMEWORKS) test-cluster test-chapters test-book soak $(SOAKS) wheel offline pdf slides grade bench bench-pages predict record exercises gpu-check test-gpu-requirements mutants clean

help:    ## this list
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile

setup: .venv/.ready  ## .venv, a Chromium, the data and the pages' scripts: what is missing of them
.venv/.ready: requirements.txt package-lock.json hub/package-lock.json tests/npm/package-lock.json tools/browser/package-lock.json pyproject.toml tools/setup.sh
	@tools/setup.sh

book: setup  ## run every chapter that has changed and build the pages
	@$(ALONE) "make book" $(PYTHON) tools/book.py

serve: setup  ## show the pages on this machine only; also those of a book with a failed chapter
	@$(ALONE) "make serve" $(PYTHON) tools/book.py || [ $$? = 1 ]
	@$(PYTHON) -u -m http.server --bind 127.0.0.1 --directory _build/html 0

offline: book  ## the pages as one zip that opens without a server or a network, to dist/
	@$(PYTHON) tools/offline_zip.py

pdf: book  ## the pages as one PDF, to dist/
	@$(PYTHON) tools/pdf.py

slides: book  ## slides of every chapter, to dist/slides
	@$(PYTHON) tools/slides.py dist/slides

grade: setup  ## a class's notebooks: make grade AUTOGRADER=exercises/foundations-autograder.zip FOLDER=...
	@$(PYTHON) tools/grade.py $(call quoted,$(or $(AUTOGRADER),$(error which autograder? make exercises makes them))) $(call quoted,$(or $(FOLDER),$(error which folder?)))

wheel: .venv-release/.ready  ## the package, checked, to dist/
	rm -f dist/*.whl dist/*.tar.gz
	.venv-release/bin/python -m build
	.venv-release/bin/python -m twine check --strict dist/*.whl dist/*.tar.gz
	.venv-release/bin/cffconvert --validate

test-frameworks: .venv-frameworks/.ready  ## check and explain on scripts of Accelerate, Trainer, Lightning, Fabric and Ignite, fits on networks of Hugging Face
	env -i PATH='$(PATH)' HOME='$(HOME)' .venv-frameworks/bin/python -m pytest --noconftest tests/frameworks

.venv-frameworks/.ready: .venv/.ready requirements-frameworks.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv-frameworks
	.venv-frameworks/bin/python -m pip install -q -r requirements-frameworks.txt
	.venv-frameworks/bin/python -m pip install -q --no-deps -e .
	@touch $@

.venv-release/.ready: .venv/.ready requirements-release.txt
	$(PYTHON) -m venv --clear .venv-release
	.venv-release/bin/python -m pip install -q -r requirements-release.txt
	@touch $@

lab: setup  ## JupyterLab in your own copy of the course, on this machine only
	@JUPYTER_CONFIG_PATH=$(CURDIR)/hub $(PYTHON) tools/lab.py

lab-app: setup  ## the training lab as an app, on this machine only
	@JUPYTER_PATH=tools/lab-app PYTHONPATH=tools $(PYTHON) -m voila chapters/lab/training-lab.ipynb --template=course --no-browser --Voila.ip=127.0.0.1 \
		--MultiKernelManager.kernel_manager_class=server_kernels.ServerKernelManager

hub: setup  ## a JupyterHub with a choice of GPUs, on this machine only
	@$(PYTHON) hub/start.py

hub-class:  ## as root, a hub for a class: make hub-class DOMAIN=hub.example.org USERS="ada grace" ADMINS=ada
	@$(firstword $(wildcard /usr/bin/python3.11) python3.11) hub/install.py $(or $(DOMAIN),$(error which domain?)) --users $(or $(USERS),$(error which users?)) --admins $(or $(ADMINS),$(error which admins?))

run: setup  ## run one chapter and store the outputs of its checked cells: make run CHAPTER=...
	@$(PYTHON) tools/chapter.py $(or $(CHAPTER),$(error which chapter? make run CHAPTER=chapters/....ipynb))

quick: setup  ## before a commit: ruff, and of the rooms of tests what is cheap
	$(PYTHON) -m ruff check .
	$(PYTEST) -q -n 2 --dist worksteal $(QUICK:%=tests/%)
	$(PYTEST) -q $(QUICK_BACKENDS:%=tests/backends/%) --framework torch
	$(PYTEST) -q $(QUICK_BACKENDS:%=tests/backends/%) --framework mxnet

lint-text: setup  ## how pages and code are written: spelling, the shape of a chapter, lines that a window cuts
	$(PYTHON) -m codespell_lib
	$(PYTEST) -q -m text tests/figures tests/notebooks

test: setup  ## everything, three things at a time (the hub mostly waits), the longest first
	@$(ALONE) "make test" $(MAKE) --no-print-directory all-tests

all-tests: setup
	$(PYTHON) -m ruff check .
	$(MAKE) $(JOBS) $(LANES) $(FRAMEWORKS)
	$(MAKE) test-cluster
	$(MAKE) test-chapters
	$(MAKE) test-book

test-hub: setup  # a real hub: it mostly waits, so the rest goes on beside it
	$(PYTEST) tests/hub

test-package: setup
	$(PYTEST) tests $(foreach room,backends book cluster frameworks hub $(ROOMS:test-%=%),--ignore tests/$(room))

$(ROOMS): test-%: setup
	$(PYTEST) tests/$*

test-cluster: setup  ## several hosts in one box, as root on Linux: its kills want a machine without other work
	$(PYTEST) $(LONGEST) tests/cluster -n 3 --dist loadfile --no-loadscope-reorder

$(FRAMEWORKS): test-%: setup
	$(PYTEST) tests/backends --framework $*

test-chapters: setup  # on little data; the tests' book is made of what they put out
	$(PYTEST) --nbval --executed chapters -n 2 --dist loadfile

test-book: setup  # pytest-xdist: the longest files are the last
	$(PYTHON) tools/book.py --tested
	$(PYTEST) tests/book -n 3 --dist worksteal

soak: $(SOAKS)  ## what CI has no time for, hours of it; each part by its name: `make soak-chapters`, `make soak-explain` ...

soak-chapters: setup  # the checked cells, twenty times
	for i in $$(seq 20); do $(PYTEST) -q --nbval chapters || exit 1; done

soak-browser: setup  # twenty times, then fifty interruptions, the lab of every chapter, and its runs beside busy loops and at rest
	for i in $$(seq 20); do $(PYTEST) -q tests/browser || exit 1; done
	$(PYTEST) -q tests/browser/interruptions.py tests/browser/all_labs.py tests/browser/steadiness.py

soak-hub: setup  # from the rocket to Stop, twenty times, then ten learners at once
	for i in $$(seq 20); do $(PYTEST) -q tests/hub/test_launch_links.py || exit 1; done
	$(PYTEST) -q -s tests/hub/ten_learners.py

soak-arguments: setup  # drawn anew, twenty times
	for i in $$(seq 20); do $(PYTEST) -q --hypothesis-profile other tests/test_public_functions.py tests/costmodel tests/collectives || exit 1; done

soak-marked: book  # the tests that are marked so
	$(PYTEST) -q -m soak tests --ignore tests/backends --ignore tests/hub
	$(PYTEST) -q -m soak tests/hub
	$(PYTEST) -q -m soak tests/backends --framework torch

soak-exercises: setup  # wrong solutions, and a class of sixty
	$(PYTHON) tests/course/exercise_mutants.py
	$(PYTEST) -q -s tests/course/class_of_sixty.py

soak-process: setup  # interruptions and kills
	$(PYTEST) -q -s tests/process/soak.py

soak-cluster: setup  # the same between hosts, job files, and five of each harm
	$(PYTEST) -q -s tests/cluster/soak.py
	$(PYTEST) -q -s tests/cluster/soak_jobs.py
	$(PYTEST) -q -s tests/cluster/soak_failures.py

soak-check: setup  # its table, five times
	$(PYTEST) -q -s tests/check/table.py

soak-explain: setup  # every cause, five times
	$(PYTEST) -q -s tests/explain/every_cause.py

soak-pages: book  # every page in every mode
	$(PYTEST) -q tests/book/every_mode.py

soak-hosted: setup  # every page on each Python, without a checkout
	TORCH_INDEX='$(TORCH_INDEX)' $(PYTHON) -m pytest -q -s tests/hosted/all_chapters.py

soak-machines: setup  # both commands on machines that lack something, as root on Linux
	$(PYTHON) tests/setup/every_machine.py

mutants: setup  ## one mistake at a time in the code of each page: does the page notice?
	@$(PYTHON) tests/notebooks/mutants.py

bench: setup  ## our training loops beside D2L's own, our allreduces beside gloo's and a copy
	$(PYTHON) -m benchmarks
	$(PYTHON) -m benchmarks.allreduce
	$(PYTHON) -m benchmarks.hosts
	$(PYTHON) -m benchmarks.watch

bench-pages: book  ## how soon the built pages show on a slow connection
	$(PYTHON) -m benchmarks.pages

predict: setup  ## published speedups and memory beside what is told of them, then step times predicted and measured here
	$(PYTHON) -m benchmarks.speedups
	$(PYTHON) -m benchmarks.rates
	$(PYTHON) -m benchmarks.published_memory
	$(PYTHON) -m benchmarks.predictions

record: setup  ## what the labs of the built pages show, and the full recipe from scratch, to records/
	for name in scratch/mxnet scratch/pytorch concise/mxnet concise/pytorch lab/gluon-mnist; do \
	    D2LMGPU_PROFILE=quick $(PYTHON) -m d2lmgpu record chapters/$$name.ipynb || exit 1; done
	for name in mxnet pytorch; do \
	    D2LMGPU_PROFILE=full $(PYTHON) -m d2lmgpu record chapters/scratch/$$name.ipynb || exit 1; done

exercises: setup  ## the learners' notebooks, the page and the autograders from exercises/*.py
	@$(PYTHON) tools/exercises.py

gpu-check: setup  ## every GPU of this machine in both frameworks, checked and written to records/
	@$(PYTHON) -m d2lmgpu gpu-check --unrun chapters
	@$(PYTHON) -m d2lmgpu gpu-check; status=$$?; $(PYTHON) tools/gpu_signs.py && exit $$status

test-gpu-requirements: setup  ## install requirements-gpu.txt into a fresh environment and use it without a GPU
	D2LMGPU_TEST_GPU_REQUIREMENTS=1 $(PYTHON) -m pytest tests/hub/test_requirements_gpu.py

clean:   ## remove the built pages and the executed chapters
	rm -rf _build
