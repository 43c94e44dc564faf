# Two commands do everything on a bare machine with Python ≥ 3.11 and make: `make verify` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
ROOMS := kernels proofs_check verify reports

STAMP := .venv/installed
RUN_STAMP := .venv/installed-run
DOCS_STAMP := .venv/installed-docs

# The rooms as one package in one folder, for tools that read code without importing it.
LINKS := build/links/canaryproof

# Tests and runs start many processes, so that compiled modules are kept, even where the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: verify prove prove-rocq test test-audit test-deep test-lowest test-newest test-frameworks test-pfl test-nvflare test-versions test-browser fuzz lint format dist docs published release-check published-canife published-trainings auditors benchmark coverage worst-inputs faults mutants clean

verify: $(RUN_STAMP)
	$(BIN)/canaryproof verify --level quick --out runs/quick --overwrite

# As many processes as cores, so that each has a BLAS of one thread: it would wait for its other ones in a loop. Each
# begins with a part of the folders, as tests of a module share what is slow to make.
# For the tests of one room: make test ROOM=bounds
test: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal $(if $(ROOM),$(or \
		$(wildcard tests/$(ROOM) tests/verify/$(ROOM) tests/verify/*/$(ROOM)),$(error there is no room $(ROOM))))

# The tests of the auditor's library and of the kernels that it needs, without the study of the papers.
test-audit: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n auto --dist worksteal -m "not quick_run" tests/kernels tests/verify/audit tests/verify/api

test-deep: $(STAMP)
	OPENBLAS_NUM_THREADS=1 HYPOTHESIS_PROFILE=deep $(BIN)/pytest -n auto --dist worksteal

# The proofs of the kernels' error bounds, repeated: some minutes. Gappa checks some of them where it is installed.
prove: $(STAMP)
	$(BIN)/python -m canaryproof.proofs_check.rounding

# Proofs of the bounds' statistics and of rounding, checked by Rocq's kernel where it is installed: three minutes.
prove-rocq: $(STAMP)
	$(BIN)/python -m canaryproof.proofs_check.rocq

# The tests that need PyTorch with Opacus, transformers, jax_privacy or Flower, in an environment of its own, as they are
# large. PyTorch is installed first: where pip is told of builds for the processor alone, Opacus then brings no other.
FRAMEWORKS := .venv-frameworks/bin
FRAMEWORKS_PIP := $(FRAMEWORKS)/pip install --quiet --constraint constraints.txt --constraint constraints-frameworks.txt
test-frameworks:
	test -x $(FRAMEWORKS)/python || $(PYTHON) -m venv .venv-frameworks
	$(FRAMEWORKS_PIP) pip setuptools torch
	PYTHONWARNINGS=ignore $(FRAMEWORKS_PIP) --no-build-isolation --editable '.[opacus,transformers,jax-privacy,flower,test]'
	OPENBLAS_NUM_THREADS=1 $(FRAMEWORKS)/pytest -n 0 -rA tests/kernels/test_arrays.py tests/verify/audit/canaries tests/verify/audit/watch tests/examples \
		tests/verify/papers/canife/test_own_model.py

# Federated servers whose pins clash with those of this package or of others, each in an environment of its own. pfl needs
# a Python below 3.13, and comes without what it depends on, as examples/pfl.txt says.
TESTS_ALONE := pytest pytest-benchmark pytest-timeout pytest-xdist
test-pfl: SERVER := --no-deps --requirement examples/pfl.txt
test-nvflare: SERVER := --constraint constraints.txt nvflare==2.9.0
test-pfl test-nvflare: test-%:
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --constraint constraints.txt pip setuptools
	PYTHONWARNINGS=ignore .venv-$*/bin/pip install --quiet --no-build-isolation --constraint constraints.txt --editable . \
		$(TESTS_ALONE)
	.venv-$*/bin/pip install --quiet $(SERVER)
	OPENBLAS_NUM_THREADS=1 .venv-$*/bin/pytest -n 0 -rA tests/examples/test_federated_servers.py

# The lowest and the highest releases of Opacus, jax_privacy and Flower that the examples take, each in an environment of
# its own. Opacus and jax_privacy have one each. For one of them: make test-versions VERSIONS=flwr==1.22.0
VERSIONS := opacus==1.6.0 jax_privacy==2.0.0 flwr==1.22.0 flwr==1.42.0
versions_tests = tests/examples/test_frameworks.py $(if $(filter flwr%,$1),tests/examples/test_federated_servers.py tests/verify/audit/watch/test_flower_watch.py) \
	$(if $(filter jax%,$1),tests/verify/audit/watch/test_loop_watch.py) \
	$(if $(filter opacus%,$1),tests/verify/audit/canaries/test_inserted_canaries.py tests/verify/audit/watch)
test-versions: $(VERSIONS:%=test-version/%)

test-version/%:
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	$(if $(filter opacus%,$*),.venv-$*/bin/pip install --quiet torch)
	.venv-$*/bin/pip install --quiet --upgrade pip setuptools
	PYTHONWARNINGS=ignore .venv-$*/bin/pip install --quiet --no-build-isolation --editable . $* scikit-learn $(TESTS_ALONE)
	OPENBLAS_NUM_THREADS=1 .venv-$*/bin/pytest -n 0 -rA $(call versions_tests,$*)

# Two suites and the public calls with the lowest versions that the package takes, and with the newest.
VERSIONED_TESTS := tests/verify/audit/canaries $(addprefix tests/verify/audit/answer/test_,audit.py replay.py trade_off.py) tests/verify/audit/watch/test_watching.py

test-lowest test-newest: test-%:
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --upgrade pip setuptools
	PYTHONWARNINGS=ignore .venv-$*/bin/pip install --quiet --no-compile --no-build-isolation --upgrade \
		$(if $(filter lowest,$*),--constraint constraints-lowest.txt) --editable . \
		$(TESTS_ALONE)
	.venv-$*/bin/canaryproof verify theorems bounds --out runs/$* --overwrite
	OPENBLAS_NUM_THREADS=1 .venv-$*/bin/pytest -n 0 $(VERSIONED_TESTS)

# The report's tests in a browser: Chromium, or Chrome, that the machine has.
test-browser: $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt playwright
	$(BIN)/pytest -n 0 -rA tests/reports/test_browser.py

# What is released, in dist: source and wheel of the last commit, installed alone on each Python from 3.11 on that can be
# found here, with digests. For some of them: make dist PYTHONS="python3.12 python3.13"
dist: $(STAMP)
	$(BIN)/python -m tests.wheel $(PYTHONS)

# Bytes for every reader of files, for a minute; where atheris has no wheel, `make test` must do.
fuzz: $(STAMP)
	-$(BIN)/pip install --quiet --only-binary atheris --constraint constraints.txt atheris
	$(BIN)/python tests/fuzz/readers.py -artifact_prefix=.venv/

lint: $(STAMP) $(LINKS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=build/links $(BIN)/mypy -p canaryproof -p other_tools
	PYTHONPATH=build/links $(BIN)/lint-imports --no-logo

$(LINKS): pyproject.toml
	mkdir -p $@
	ln -sfn $(addprefix ../../../,$(wildcard verify/api/*.py verify/api/*.pyi) verify/api/py.typed $(ROOMS)) $@
	touch $@

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, in build/site: index.html opens from the file system. Warnings are errors, and links inside are checked.
docs: $(DOCS_STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --conf-dir docs . build/site

# Judges what has no published row, at the full level, and makes all published pages anew. CHECKS names others: ids, suites,
# or outdated for all that release-check finds: 40 to 80 minutes where that is everything.
published: $(STAMP)
	$(BIN)/python -m tests.publishing $(CHECKS)

# Whether every published row is of this minor version and of its check's code as it is.
release-check: $(STAMP)
	$(BIN)/python -m tests.publishing --check

# CANIFE beside Algorithms 2 and 3, on the IDX files in DATA's folder fashion-mnist: some ten minutes, or with other
# numbers of trainings by REPEAT.
published-canife: REPEAT := 5
published-canife: $(STAMP)
	$(BIN)/canaryproof benchmark canife --data '$(DATA)/fashion-mnist' --level full --repeat $(REPEAT) --out reports/published --overwrite
	$(BIN)/python -m tests.publishing

# The papers' experiments on data that everybody can have, at full size: DATA has the folders mnist,
# fashion-mnist and shakespeare, and CANIFE's curves need none. Fifty minutes on two cores.
published-trainings: $(STAMP)
	for name in canife_digits canife_digits_clients canife_digits_norm canife_digits_pool canife_digits_steps; do \
		$(BIN)/canaryproof train $$name --size full --out runs/$$name || exit 1; done
	$(BIN)/canaryproof train mnist_canife --size full --data '$(DATA)/mnist' --out runs/mnist_canife
	$(BIN)/canaryproof train mnist_orthonormal --size full --data '$(DATA)/mnist' --out runs/mnist_orthonormal
	$(BIN)/canaryproof train plays --size full --data '$(DATA)/shakespeare' --out runs/plays
	$(BIN)/canaryproof train fashion_mnist --size full --data '$(DATA)/fashion-mnist' --out runs/fashion_mnist
	for name in canife_digits canife_digits_clients canife_digits_norm canife_digits_pool canife_digits_steps \
		mnist_canife mnist_orthonormal plays fashion_mnist; do \
		mkdir -p reports/published/$$name && cp runs/$$name/*.* reports/published/$$name; done
	$(BIN)/python -m tests.publishing

# Other people's auditing tools and accountants, each list of them in an environment of its own, and the page on them:
# half an hour. The lists pin all packages. A list that cannot be installed is skipped, and the page says so. On Linux
# torch's plain package needs CUDA: without it, install torch's CPU build into .venv-auditors/torch first.
AUDITORS := $(patsubst other_tools/%.txt,.venv-auditors/%/installed,$(wildcard other_tools/*.txt))

auditors: $(STAMP)
	-$(MAKE) --keep-going $(AUDITORS)
	$(BIN)/python -m other_tools --level full --out runs/auditors
	cp runs/auditors/auditors*.md runs/auditors/auditors-*.svg reports/published

.venv-auditors/%/installed: other_tools/%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --no-deps --requirement $<
	touch $@

# What the kernels cost on this machine, beside others, what audits of large releases do, with LARGEST=--largest up to
# 2^30 coordinates, and how long users wait: for steps with torch and for jax_privacy if `make test-frameworks` was run,
# and for an earlier version with EARLIER=…/bin/canaryproof.
benchmark: $(STAMP)
	$(BIN)/python -m tests.benchmarks --out reports/published
	$(BIN)/python -m tests.benchmarks --page releases $(LARGEST) --out reports/published
	$(or $(wildcard $(FRAMEWORKS)/python),$(BIN)/python) -m tests.benchmarks --page waiting $(addprefix --earlier ,$(EARLIER)) --out reports/published

# Whether intervals, bounds, shares and decisions hold at what they promise, in many settings, and the page on them:
# an hour of a processor's time. It goes on where it was ended; build/coverage.jsonl has what is done.
coverage: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.coverage --part 0 & OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.coverage --part 1; wait
	$(BIN)/python -m tests.coverage --publish

# The inputs at which the kernels were found to err most: from those known on, the worst of a long search.
worst-inputs: $(STAMP)
	$(BIN)/python -m tests.worst_inputs 20000 verify/papers/suites/worst_case

# Faults seeded into one function each, and what notices them.
faults: $(STAMP)
	$(BIN)/python -m tests.faults

# Changes of single operators and numbers, and whether the changed module's own tests notice them.
mutants: $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints.txt cosmic-ray
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.mutants

clean:
	rm -rf .venv .venv-* build dist runs *.egg-info

# What a run of the suites needs, and what the tests and the linters need besides, each with the stamps that it makes.
# Python compiles what is imported: all 15,000 modules of the packages would take longer.
$(RUN_STAMP): EXTRAS := federated
$(STAMP): EXTRAS := test,lint
$(RUN_STAMP) $(STAMP): pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install --quiet --constraint constraints.txt pip setuptools
	PYTHONWARNINGS=ignore $(BIN)/pip install --quiet --no-compile --no-build-isolation --constraint constraints.txt \
		--editable '.[$(EXTRAS)]'
	touch $(sort $@ $(RUN_STAMP))

$(DOCS_STAMP): $(STAMP)
	PYTHONWARNINGS=ignore $(BIN)/pip install --quiet --no-build-isolation --constraint constraints.txt \
		--editable '.[docs]'
	touch $@

.venv/bin/python:
	$(PYTHON) -m venv .venv
