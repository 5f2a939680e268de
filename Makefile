# SPDX-License-Identifier: Apache-2.0
# A thin front: CMake presets do the work, CTest runs the tests. `make help` lists what there is.
.DEFAULT_GOAL := all
.PHONY: all help setup demo tour test test-all bench fuzz gpu-check gpu-sanitize gpu-bench install coverage lint format clean

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
BENCH_GIB ?= 2
DEMO ?= # flags of the demo, such as --store s3://bucket/prefix
CTEST = ctest --output-on-failure --no-tests=error -j $(shell nproc)

# Configures and builds one preset; what goes wrong comes on standard error.
define build
cmake --preset $(1) > /dev/null
cmake --build --preset $(1)
endef

all: ## release build; afterwards build/ulpsync runs
	@tools/setup build
	@$(call build,release)

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 14

setup: ## install what is missing for building and testing
	@tools/setup test

demo: all ## the main job, live: a trainer that learns by reward, workers that follow it, and the proof
	@examples/rl/run build $(DEMO)

tour: all ## what the command does, verb by verb, on a synthetic run
	@examples/tour build/ulpsync

test: ## all default tests: plain, address and undefined-behaviour sanitizers, thread sanitizer
	@tools/setup test
	@$(call build,dev)
	@$(CTEST) --test-dir build/dev -LE slow
	@$(call build,asan)
	@$(CTEST) --test-dir build/asan -LE "slow|house"
	@$(call build,tsan)
	@$(CTEST) --test-dir build/tsan -LE "slow|house" -R "base_|digest_root|synth_|patch_(same_bytes|spill|parts|at_once)$$|store_(mixed|cache|cache_shared)$$"

test-all: test ## the default tests, the slow ones, and everything again with clang
	@tools/setup all
	@$(CTEST) --test-dir build/dev -L slow
	@$(call build,clang)
	@$(CTEST) --test-dir build/clang -LE house

bench: all ## scan, digest, codec, patches and runs against the limits of memory
	@build/bench_memory $(BENCH_GIB) build; slow=$$?; build/bench_code; echo; build/ulpsync bench; build/bench_runs build/bench-runs; exit $$slow

fuzz: ## every fuzz target for FUZZ_SECONDS each
	@tools/setup all
	@$(call build,fuzz)
	@fuzz/run build/fuzz $(FUZZ_SECONDS)

gpu-check: ## GPU tests; exit code 77 on a machine without a GPU
	@tools/gpu-check

gpu-sanitize: ## kernels on a GPU under compute-sanitizer: memory and races, with little data
	@tools/gpu-check sanitize

gpu-bench: ## diff, encode, decode, apply and digest on a GPU beside the limits of its memory
	@tools/gpu-check bench

install: all ## into PREFIX, /usr/local unless given
	@cmake --install build --prefix "$(abspath $(PREFIX))"

coverage: ## line coverage of the default tests
	@tools/setup all
	@$(call build,coverage)
	@$(CTEST) --test-dir build/coverage -LE "slow|house"
	@tools/coverage build/coverage

lint: ## clang-tidy and clang-format over the tree
	@tools/setup all
	@$(call build,clang)
	@tools/lint build/clang

format: ## put the sources into the project's format
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean: ## remove everything that was built
	@rm -rf build
