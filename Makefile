# Monochord.  `make help` lists what can be made; every target first sees to what it needs.
#   CC=clang make test      another compiler (in a build folder of its own)
#   WERROR=1 make           warnings are errors
#   JOBS=4                  how many compilers, or tests, at once

.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
SUITE  ?= exp
WHAT   ?=
FUZZ_SECONDS ?= 30

ifeq ($(origin CC),default)
BUILD ?= build
else
BUILD ?= build-$(notdir $(CC))
endif
ifneq ($(findstring clang,$(CC)),)
CXX := clang++
endif
export CC CXX

FLAGS = -DCMAKE_C_COMPILER=$(CC) -DMONOCHORD_WERROR=$(if $(WERROR),ON,OFF)
setup := @scripts/setup.sh cc cmake
# $(call build,FOLDER,CMAKE OPTIONS,WHAT OF IT)
build = @cmake -S . -B $(1) -G "Unix Makefiles" $(FLAGS) $(2) >/dev/null && \
	env -u MAKEFLAGS -u MAKELEVEL cmake --build $(1) -j$(JOBS) $(if $(3),--target $(3))
# Kernels that tests compile are kept with the build, not among the user's; builds under a sanitizer, whose kernels
# are the same, find them there.
# Texts for GPUs are compiled by NVRTC, where scripts/nvrtc.sh could fetch it.
tests = TEST_CUDA_PATH=$${TEST_CUDA_PATH:-$(CURDIR)/$(BUILD)/nvrtc} \
	XDG_CACHE_HOME=$(CURDIR)/$(BUILD)/cache $(1)/monochord_tests --jobs $(JOBS)

# Random programs are evaluated in NumPy, of PYTHON or else of a virtual environment of their own.
PYTHON ?= $(shell python3 -c 'import numpy' 2>/dev/null && echo python3)
venv = @[ -n "$(PYTHON)" ] || scripts/numpy.sh $(BUILD)/venv
python = $(if $(PYTHON),$(PYTHON),$$([ -x $(BUILD)/venv/bin/python ] && echo $(BUILD)/venv/bin/python || echo python3))
random = MC_LIBRARY=$(CURDIR)/$(BUILD)/libmonochord.so $(python) tests/random_programs.py --jobs $(JOBS) --cache $(CURDIR)/$(BUILD)/cache/random

loops = MC_LIBRARY=$(CURDIR)/$(BUILD)/libmonochord.so $(python) tests/loops.py --jobs $(JOBS) --cache $(CURDIR)/$(BUILD)/cache/loops

bundles = MC_LIBRARY=$(CURDIR)/$(BUILD)/libmonochord.so $(python) tests/bundle.py --jobs $(JOBS) --cache $(CURDIR)/$(BUILD)/cache/bundle

exports = MC_LIBRARY=$(CURDIR)/$(BUILD)/libmonochord.so $(python) tests/export.py --jobs $(JOBS) --cache $(CURDIR)/$(BUILD)/cache/export

extremes = MC_LIBRARY=$(CURDIR)/$(BUILD)/libmonochord.so XDG_CACHE_HOME=$(CURDIR)/$(BUILD)/cache $(python) tests/extremes.py

all: ## build the library, the program and the tests in build/
	$(setup)
	$(call build,$(BUILD))
	@echo "built $(BUILD)/libmonochord.so, $(BUILD)/libmonochord-run.so, both also as .a, $(BUILD)/monochord"

test: all ## the everyday tests; WHAT="gemm rules/log" runs only those
ifeq ($(WHAT),)
	@scripts/setup.sh c++ pkg-config nm
	@scripts/layers.sh
	@scripts/symbols.sh $(BUILD)
	@scripts/runtime.sh $(BUILD)
	@scripts/headers.sh
	@scripts/install_test.sh $(BUILD)
endif
	@scripts/nvrtc.sh $(BUILD)/nvrtc
	@$(call tests,$(BUILD)) $(WHAT)
ifeq ($(WHAT),)
	$(venv)
	@$(extremes)
	@$(python) tests/defects.py --list >/dev/null
	@$(random) --seeds 0:100 --quick --quiet
	@$(loops) --seeds 0:300 --quiet
	@$(loops) --seeds 0:20 --export --quiet
	@$(exports) --quiet
	@$(bundles) --quiet
	@$(python) tests/ranks.py $(BUILD)/monochord --kill 1
	@scripts/fake_gpu.sh $(BUILD) -- env $(random) --seeds 0:6 --quick --quiet --device cuda
	@scripts/fake_gpu.sh $(BUILD) -- env $(loops) --seeds 0:6 --quiet --device cuda
	@scripts/fake_gpu.sh $(BUILD) -- env $(bundles) --seeds 0:1 --programs 0:6 --quiet
endif

test-full: all ## all tests, the slow ones too
	@$(call tests,$(BUILD)) --tier full --times $(WHAT)

# What kernels are made of: a choice that each level and each processor can run in minutes.
KERNELS = t_cpu/features t_kernel t_math t_gemm t_conv_fast t_norm t_rows

test-isa: all ## the everyday tests with cpu.isa at each level below what this processor has; WHAT=... or KERNELS_ONLY=1
	@scripts/elsewhere.sh levels $(BUILD) $(JOBS) $(or $(WHAT),$(if $(KERNELS_ONLY),$(KERNELS)))

test-qemu: all ## the tests of kernels on a Nehalem and a Haswell that qemu stands for; WHAT=...
	@scripts/setup.sh qemu-x86_64
	@scripts/elsewhere.sh qemu $(BUILD) $(JOBS) $(or $(WHAT),$(KERNELS))

test-arm: CC = aarch64-linux-gnu-gcc
test-arm: ## the everyday tests built for AArch64, under qemu, kernels compiled for it as well; WHAT=...
	$(setup) qemu-aarch64
	$(call build,build-arm,-DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake)
	@scripts/elsewhere.sh arm build-arm $(JOBS) $(WHAT)

test-musl: CC = musl-gcc
test-musl: ## the everyday tests built with musl, kernels as well; WHAT=...
	$(setup)
	$(call build,build-musl)
	@scripts/elsewhere.sh musl build-musl $(JOBS) $(WHAT)

program: ## build the library and the program alone
	$(setup)
	$(call build,$(BUILD),,tool)

demo: program ## LeNet learns drawn digits, the tutorial's loop races NumPy; leaves report.html
	@$(BUILD)/monochord demo

test-gpu: ## WHAT="t_cuda t_gemm": tests on this machine's GPU, built in build-gpu/, output in build-gpu/gpu_test.txt; SANITIZE=1: under compute-sanitizer
	$(setup)
	@scripts/gpu_test.sh $(WHAT)

test-fake-gpu: all ## WHAT="t_gpu t_kernel": tests with device=cuda on a GPU that is this processor
	@scripts/setup.sh c++
	@scripts/fake_gpu.sh $(BUILD) $(WHAT)

# Not t_settings, which is the first to read the environment's flags.
no_toys = %/t_settings.c
# What a device's memory decides: values, calls, updates, loops, what is kept between calls.
of_memory = array call checkpoint concurrent custom device_array dlpack epilogue function ifelse joint learner moves \
	nn_train ops_index ops_gather prepared scan scan_front scan_values shared shapes threads toy updates value
# modules(PATTERNS): tests without these files
modules = $(addsuffix /,$(basename $(notdir $(filter-out $(1),$(wildcard tests/t_*.c)))))
test-toy: all ## the everyday tests on a device of the tests alone (tests/t_toy.c); BRIEF=1: those that depend on a device's memory
	@TEST_TOY=1 $(call tests,$(BUILD)) --tier everyday $(if $(BRIEF),$(of_memory:%=t_%/),$(call modules,$(no_toys)))

test-random: all ## SECONDS=15 of random programs against NumPy; ARGS="--seed 7" that one alone
	$(venv)
	@$(random) --seconds $${SECONDS:-15} $(ARGS)

test-ranks: all ## ranks by MPI: the same bits for any number of them; KILL=3 runs in which a rank is killed
	$(venv)
	@scripts/setup.sh mpi
	@$(python) tests/ranks.py $(BUILD)/monochord --kill $${KILL:-3}

test-loops: all ## ARGS="--seeds 0:2000" of random loops against their steps, or "--seed 7" that one alone
	$(venv)
	@$(loops) $(ARGS)

test-defects: all ## ARGS="--rows sum": puts known defects back, one at a time: do random programs and exports find them?
	$(venv)
	@$(python) tests/defects.py $(ARGS)

test-extremes: all ## every scalar op and cast at the extreme values of every dtype against NumPy
	$(venv)
	@$(extremes) --all

test-export: all ## ARGS="--seeds 0:50" or "--case 'net 7'": exported C against the library; --night: all models, hundreds of nets
	$(venv)
	@$(exports) $(ARGS)

test-bundle: all ## ARGS="--seeds 0:50" or "--case 'net 7'": functions against what is loaded from their files; --night: all models, hundreds of nets
	$(venv)
	@$(bundles) $(ARGS)

test-night: all ## ARGS="--seeds 0:50000 --results FOLDER": random programs in slices; what FOLDER has is not done again
	$(venv)
	@$(exports) --night
	@$(bundles) --night
	@$(loops) --seeds 300:2300
	@$(loops) --seeds 20:520 --export
	@tests/cortex_m.sh $(BUILD)/monochord
	@$(random) --seeds 0:50000 --results $(BUILD)/night $(ARGS)
	@$(MAKE) test-toy
	@$(MAKE) test-ranks KILL=200
	@$(call tests,$(BUILD)) --tier full t_grid t_cuda_texts
	@$(MAKE) asan
	@$(MAKE) all CC=clang BUILD=$(BUILD)-clang
	@$(MAKE) test-ladder COUNT=$${COUNT:-1000}
	@$(MAKE) wheel TEST=1

test-ladder: all ## SEED=1 COUNT=40: formulas composed at random, and their derivatives, on a ladder of magnitudes against mpmath
	@scripts/numpy.sh $(BUILD)/mpmath mpmath
	@$(BUILD)/mpmath/bin/python tests/stable.py --random $${COUNT:-40} --seed $${SEED:-1} > $(BUILD)/ladder.txt
	@STABLE_TABLE=$(CURDIR)/$(BUILD)/ladder.txt $(call tests,$(BUILD)) t_ladder/formulas t_ladder/kernels

bench: all ## SUITE=exp (or all): ours and other libraries' in one run, with the ratios; bench/results/
	@scripts/setup.sh venv
	@bench/peers/setup.sh
	$(if $(filter python all,$(SUITE)),$(call build,$(BUILD),-DMONOCHORD_PYTHON=ON,python_module))
	@bench/.venv/bin/python bench/compare.py --suite $(SUITE) --ours $(BUILD)/monochord

# In these, other compilers do the work: C files that were written, and NVRTC.
by_compilers = %/t_portable.c %/t_cuda_texts.c %/t_grid.c $(wildcard tests/t_export*.c)
asan: ## the everyday tests under the address and undefined-behaviour sanitizers; BRIEF=1: without those in which compilers work
	$(setup) sanitizers
	$(call build,$(BUILD)-asan,-DMONOCHORD_SANITIZE=address$(,)undefined -DMONOCHORD_POISON=ON)
	@UBSAN_OPTIONS=print_stacktrace=1 $(call tests,$(BUILD)-asan) $(or $(WHAT),$(if $(BRIEF),--tier everyday $(call modules,$(by_compilers))))

clang: all ## all sources by clang's front end, which gives all its warnings; nothing is linked
	@CC=clang scripts/setup.sh clang cmake
	@cmake -S . -B $(BUILD)-clang -G "Unix Makefiles" $(subst =$(CC),=clang,$(FLAGS)) -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >/dev/null
	@sed -n 's/^ *"command": "\(.*\)",$$/\1/p' $(BUILD)-clang/compile_commands.json | \
	 sed 's| -o [^ ]* -c | -fsyntax-only |; s|$(CURDIR)/$(BUILD)-clang/gen|$(CURDIR)/$(BUILD)/gen|g; s|\\"|"|g; s|\\\\|\\|g' | sort -u | \
	 xargs -d '\n' -P $(JOBS) -I{} sh -c '{} || exit 255'

tsan: ## the everyday tests under the thread sanitizer
	$(setup) sanitizers
	$(call build,$(BUILD)-tsan,-DMONOCHORD_SANITIZE=thread)
	@TSAN_OPTIONS=halt_on_error=1:suppressions=$(CURDIR)/tests/tsan.supp $(call tests,$(BUILD)-tsan) $(WHAT)

fuzz: ## each tests/fuzz_*.c under the sanitizers for FUZZ_SECONDS=30: led by coverage where there is clang
	$(setup) sanitizers
	@BUILD=$(BUILD) JOBS=$(JOBS) scripts/fuzz.sh $(FUZZ_SECONDS) $(WHAT)

format: ## clang-format on the .c files, tables left alone
	@scripts/setup.sh clang-format git
	@scripts/format.sh

layers: all ## do includes point downward only, are cycles small, names and lines as docs/glossary.md and the style have them?
	@scripts/setup.sh git python3
	@scripts/layers.sh
	@python3 scripts/circles.py $(BUILD)
	@python3 scripts/words.py

circles: all ## which files need each other, by their symbols?  None may be one of more than four
	@python3 scripts/circles.py $(BUILD)

symbols: all ## do the libraries export what abi/ lists, mc_ alone, and call nothing they must not?
	@scripts/setup.sh nm
	@scripts/symbols.sh $(BUILD)

abi: all ## add new exported symbols to abi/monochord.txt; read the diff
	@scripts/setup.sh nm
	@nm -D --defined-only $(BUILD)/libmonochord.so | awk '$$2 != "A" { print $$3 }' | LC_ALL=C sort -u - abi/monochord.txt > $(BUILD)/abi.txt
	@mv $(BUILD)/abi.txt abi/monochord.txt
	@git diff --stat -- abi

runtime: all ## is libmonochord-run below 1 MB, and does it serve a program that is linked with it alone?
	@scripts/setup.sh nm
	@scripts/runtime.sh $(BUILD)

headers: ## does each public header compile alone, as C11 and as C++17?
	@scripts/setup.sh cc c++
	@scripts/headers.sh

install-test: all ## does an installed copy serve pkg-config, CMake and C++?
	@scripts/setup.sh c++ pkg-config
	@scripts/install_test.sh $(BUILD)

bless: all ## write the golden files anew from what the library does now; read the diff
	@MC_BLESS=1 $(call tests,$(BUILD)) $(WHAT)
	@git diff --stat -- tests/golden include docs

docs: all ## write docs/ops.md, docs/flags.md, docs/layers.md and docs/api from the tables and the headers
	@$(BUILD)/monochord docs docs
	@scripts/api.py

site: docs ## the documents as static pages with search: build/site/index.html
	@scripts/site.py $(BUILD)/site

install: all ## PREFIX=/usr/local: library, headers, program, pkg-config and CMake files
	@cmake --install $(BUILD) --prefix $(PREFIX)
	@[ "$$(id -u)" != 0 ] || ldconfig 2>/dev/null || :

wc: ## lines of each folder
	@for d in include $$(find src -mindepth 1 -type d | sort) tools examples tests bench scripts; do \
	    [ -d $$d ] || continue; \
	    find $$d -maxdepth 1 -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.py' -o -name '*.sh' \) -exec cat {} + | \
	        wc -l | awk -v d=$$d '{ printf "%6d  %s\n", $$1, d }'; \
	done | awk '{ n += $$1; print } END { printf "%6d  in all\n", n }'

clean: ## remove every build folder
	@rm -rf build build-*

help: ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/    make \1	\2/p' Makefile | expand -t 22

, := ,
# Another interpreter has a build folder of its own, since the module may serve its version alone.
python_build = $(BUILD)$(if $(PY),-$(notdir $(PY)))
python_module = $(call build,$(python_build),-DMONOCHORD_PYTHON=ON $(if $(PY),-DPython3_EXECUTABLE=$(shell command -v $(PY))),python_module)

test-python: ## the extension module and the packages of Python, and their tests; SUITES=1: also Lasagne and the Deep Learning Tutorials; PY=python3.9: by that interpreter
	$(setup) venv $(if $(PY),,python-dev)
	$(python_module)
	@PY=$(PY) scripts/python_tests.sh $(python_build) $(if $(SUITES),--suites) $(WHAT)

wheel: ## wheels of the packages of Python in build/wheels; TEST=1: installs them where no compiler is, and runs LeNet there; PY=python3.9: for that interpreter
	$(setup) venv $(if $(PY),,python-dev)
	$(python_module)
	@PY=$(PY) scripts/wheel.sh $(python_build) $(if $(TEST),--test)

.PHONY: all program test test-full test-isa test-qemu test-arm test-musl test-random test-loops test-ranks test-defects test-extremes test-export test-bundle test-python wheel test-night test-ladder test-gpu demo bench asan clang tsan fuzz format layers circles symbols abi runtime headers install-test bless docs site \
	install wc clean help
