# mica: one Makefile, no configure step. `make help` lists the targets.
#
#   BUILD=build                where everything built goes; delete it and nothing is lost
#   CC=cc                      gcc or clang
#   DEBUG=1                    -O1, assertions, and the verifier after each pass
#   SANITIZE=address,undefined or thread; give it a BUILD of its own
#   ONLY='/parity/ /grad/'     of the test programs, those with one of these in their path
#   COVER='src/backend nn'    folders that make coverage reports
#   RUN=qemu-aarch64           put this before each test program (make test-programs)
#   BENCH='--threads 1 norm'   arguments of mica bench; PEERS='--rounds 5': of bench/peers.py
#   PREFIX=/usr/local DESTDIR= where install puts things
#   JOBS=2                     how many at once; all cores if not given

BUILD    ?= build
PREFIX   ?= /usr/local
ONLY     ?= /
JOBS     ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 60
MAC      ?= $(filter Darwin,$(shell uname -s))
VERSION  := $(shell sed -n 's/^.define MICA_VERSION_STRING "\(.*\)"/\1/p' include/mica.h)

# The scripts work on the same build, and may call make again.
export BUILD CC CFLAGS LDFLAGS DEBUG SANITIZE RUN JOBS
ifneq ($(MICA_TEST_DENSE),) # set means dense, even to nothing
export MICA_TEST_DENSE
endif

# Parallel by default. Sub-makes share the job slots of the outermost one.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(JOBS)
endif

.DEFAULT_GOAL := all

# ------------------------------------------------------------------ flags ----

WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
OPTIMISE = $(if $(DEBUG),-O1 -DMICA_DEBUG=1,-O2 -DNDEBUG)
CHECKED  = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# Kernels that this CPU cannot run are only compiled; sanitizers would take most of that time.
ifeq ($(shell grep -c -m 1 avx512f /proc/cpuinfo 2>/dev/null),0)
$(foreach v,avx512 avx512vnni avx512bf16,$(eval $$(BUILD)/%_$(v).o: CHECKED =))
endif
# No contraction: a*b+c rounds twice on every machine, so that results agree.
ALL_CFLAGS = -std=c11 $(OPTIMISE) $(if $(SANITIZE)$(RUN),-g1,-g) -fPIC -fvisibility=hidden -ffp-contract=off $(WARNINGS) $(CHECKED) -Iinclude \
	$(if $(MAC),,-D_GNU_SOURCE) $(CFLAGS)
ALL_LDFLAGS = $(CHECKED) $(LDFLAGS)
LIBS     = -lm -lpthread

# A source file whose name ends in _avx2.c and the like is a variant for CPUs with
# that feature and gets the flags for it; on another architecture it gets none and
# compiles to nothing (#if defined(__AVX2__)). Which one runs is decided at run time
# (src/base/cpu.h). FLAGS_src/file.c = ... gives more to one file.
ifneq ($(filter x86_64-%,$(shell $(CC) -dumpmachine 2>/dev/null)),)
VARIANT_avx2       = -mavx2 -mfma -mf16c
VARIANT_avx512     = $(VARIANT_avx2) -mavx512f -mavx512bw -mavx512vl -mavx512dq
VARIANT_avx512vnni = $(VARIANT_avx512) -mavx512vnni
VARIANT_avx512bf16 = $(VARIANT_avx512vnni) -mavx512bf16
else ifneq ($(filter aarch64-% arm64-%,$(shell $(CC) -dumpmachine 2>/dev/null)),)
VARIANT_dotprod    = -march=armv8.2-a+dotprod
VARIANT_i8mm       = $(VARIANT_dotprod)+i8mm
VARIANT_bf16       = $(VARIANT_i8mm)+bf16
endif
# Vectors of 64 bytes, which this CPU may lack, as arguments inside the file only.
WIDER = $(wildcard tests/codegen/test_chain*.c) tests/unit/test_gemm_dot_emulated.c tests/unit/test_rows.c \
	tests/unit/test_random_wide.c tests/unit/test_qmatmul_panels.c tests/unit/test_kernels_attention.c tests/unit/test_kernels_conv.c
$(foreach f,$(WIDER),$(eval FLAGS_$(f) = -Wno-psabi))
variant = $(VARIANT_$(lastword $(subst _, ,$(basename $(notdir $(1))))))

# ---------------------------------------------------------------- products ---

# libmica.so.1.2.3 on Linux, libmica.1.2.3.dylib on macOS, given ".1.2.3".
shared    = $(if $(MAC),libmica$(1).dylib,libmica.so$(1))
SHARED   := $(BUILD)/$(call shared,)
SONAME   := $(call shared,.$(firstword $(subst ., ,$(VERSION))))
SHARED_FLAGS = $(if $(MAC),-dynamiclib -install_name $(PREFIX)/lib/$(SONAME),-shared -Wl,-soname,$(SONAME)) \
	$(if $(DEBUG)$(SANITIZE),,-Wl,-S) # what debuggers read is five times the code; libmica.a keeps it

# One short line for each thing made; V=1 shows the commands.
quiet     = $(if $(V),,@echo '  $(1)';)
objects   = $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(1)))
programs  = $(patsubst %.c,$(BUILD)/%,$(wildcard $(1)))

LIBRARY  := $(BUILD)/libmica.a
LIB_OBJ  := $(call objects,src/*/*.c src/*/*/*.c nn/*.c models/*.c)
CLI_OBJ  := $(call objects,cli/*/*.c)
HELPERS  := $(BUILD)/tests/helpers.a
TESTS    := $(call programs,tests/*/test_*.c)
REPLAYS  := $(call programs,tests/fuzz/fuzz_*.c)
FUZZERS  := $(REPLAYS:$(BUILD)/tests/fuzz/%=$(BUILD)/fuzzers/%)
EXAMPLES := $(call programs,examples/*.c)
# The longest first, so that none of them runs alone at the end; those of unit/ are such under qemu.
LONGEST   = $(addprefix $(BUILD)/tests/,parity/test_parity metal/test_shader_mutants metal/test_shaders% \
	unit/test_rows unit/test_kernels_attention)
named     = $(strip $(foreach o,$(1),$(findstring $(o),$(2))))
PROGRAMS  = $(foreach p,$(filter-out $(UNSEEN),$(filter $(LONGEST),$(TESTS)) $(if $(SOFTMETAL),$(patsubst %,$(BUILD)/tests/%@metal,$(ON_METAL))) \
	$(filter-out $(LONGEST),$(TESTS))) $(SM_TESTS) $(REPLAYS) $(EXAMPLES),$(if $(call named,$(ONLY),$(p)),$(p)))
# Those that tests/run.sh runs a second time on the GPU: sums, gradients, networks, loops, models, each allocation failing;
# the longest of them not under a sanitizer. Why not the others of these folders: parity/test_parity opens Metal itself;
# the rest of parity/, api/test_lanes, test_large, test_narrow and test_liquid_memory look at the CPU's threads, kernels and
# memory; the rest of grad/ computes in doubles on the reference backend, against which test_grad_device holds the GPU;
# api/test_errors_* and test_passes say what is printed, and here plans are; the remaining ones compute nothing.
ON_METAL  = parity/test_golden grad/test_grad_device api/test_async api/test_compile api/test_eval api/test_file api/test_liquid_golden \
	api/test_nn_errors api/test_nn_layers api/test_nn_resume api/test_ownership api/test_replay api/test_rest api/test_scan api/test_status \
	api/test_threads models/test_lm_errors \
	$(if $(SANITIZE),,api/test_liquid api/test_liquid_files api/test_nn_files api/test_nn_steps api/test_nn_table api/test_nn_train api/test_state \
	fault/test_fault fault/test_fault_models fault/test_fault_nn fault/test_fault_series models/test_lm_decoder models/test_lm_fault models/test_lm_stories models/test_series_model)
# Mutants are there to prove softmetal's checker, in which no sanitizer sees anything.
UNSEEN    = $(if $(SANITIZE),%/test_shader_mutants)
SCRIPTS   = $(wildcard tests/api/*.sh tests/e2e/*.sh) tools/check_layers.sh

# The Metal device in software: needs dlopen, so no static build has it.
ifeq ($(MAC)$(findstring -static,$(LDFLAGS)),)
include softmetal/softmetal.mk
endif

all: $(LIBRARY) $(SHARED) $(BUILD)/mica $(SOFTMETAL) $(SM_LINT) ## the library, static and shared, and the command

# The model inside the library, if there is one (models/lm_builtin.c).
BUILTIN  := $(firstword $(wildcard models/builtin/*.gguf))
ifneq ($(BUILTIN),)
FLAGS_models/lm_builtin.c = -DMICA_BUILTIN_MODEL='"$(BUILTIN)"'
$(BUILD)/models/lm_builtin.o: $(BUILTIN)
endif

# The Metal text inside it.
$(BUILD)/src/backend/metal/shaders.o: $(wildcard src/codegen/*_msl.h src/kernels/*/*.metal src/kernels/*/*_params.h)

$(LIBRARY): $(LIB_OBJ)
$(HELPERS): $(call objects,tests/*.c)
$(LIBRARY) $(HELPERS):
	@rm -f $@
	$(call quiet,ar $@)$(AR) rcs $@ $^

$(SHARED): $(LIB_OBJ)
	$(call quiet,ld $@)$(CC) $(SHARED_FLAGS) $(ALL_LDFLAGS) $^ $(LIBS) -o $@

LINK = $(call quiet,ld $@)$(CC) $(ALL_LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -o $@

$(BUILD)/mica: $(CLI_OBJ) $(LIBRARY)
	$(LINK)
$(EXAMPLES): %: %.o $(LIBRARY)
	$(LINK)
$(TESTS): %: %.o $(HELPERS) $(LIBRARY)
	$(LINK)
$(REPLAYS): %: %.o $(BUILD)/tests/fuzz/replay_main.o $(HELPERS) $(LIBRARY)
	$(LINK)
$(FUZZERS): $(BUILD)/fuzzers/%: $(BUILD)/tests/fuzz/%.o $(HELPERS) $(LIBRARY)
	@mkdir -p $(@D)
	$(LINK) -fsanitize=fuzzer

# nn/ and models/ are written on the public headers and call malloc. For the tests of
# faults they are compiled with an allocator whose n-th allocation fails.
FAULTED  := $(patsubst %.c,$(BUILD)/faulted/%.o,$(wildcard nn/*.c models/*.c))
$(FAULTED): $(BUILD)/faulted/%.o: %.c Makefile $(BUILD)/flags | setup
	@mkdir -p $(@D)
	$(call quiet,cc $< with faults)$(CC) $(ALL_CFLAGS) $(FLAGS_$<) -DMICA_FAULTED -include tests/faulted.h \
		-MMD -MP -c $< -o $@
$(filter %/test_lm_fault %/test_fault_nn %/test_fault_models %/test_fault_series,$(TESTS)): $(FAULTED)

# Only the library and its tests see what is behind mica.h.
$(BUILD)/src/%.o: INCLUDES = -Isrc
$(BUILD)/tests/%.o: INCLUDES = -Isrc -Itests
$(BUILD)/softmetal/%.o: INCLUDES = -Isoftmetal
$(BUILD)/softmetal/tests/%.o: INCLUDES = -Isoftmetal -Itests
$(BUILD)/cli/%.o: INCLUDES = -Icli
$(BUILD)/cli/machine/version.o: INCLUDES = -Icli -DMICA_COMMIT='"$(COMMIT)"'
$(BUILD)/cli/machine/version.o: $(BUILD)/commit

$(BUILD)/%.o: %.c Makefile $(BUILD)/flags | setup
	@mkdir -p $(@D)
	$(call quiet,cc $<)$(CC) $(ALL_CFLAGS) $(INCLUDES) $(call variant,$<) $(FLAGS_$<) -MMD -MP -c $< -o $@

-include $(patsubst %.c,$(BUILD)/%.d,$(wildcard */*.c */*/*.c src/*/*/*.c)) $(FAULTED:.o=.d)

# Files that change only when their text does: what was built with other flags,
# or from another commit, is built again.
COMMIT = $(shell test -e .git && git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)
$(BUILD)/flags: TEXT = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)
$(BUILD)/commit: TEXT = $(COMMIT)
$(BUILD)/flags $(BUILD)/commit: FORCE
	@mkdir -p $(@D)
	@echo '$(TEXT)' > $@.new; if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

# ----------------------------------------------------------------- actions ---

setup: FORCE
	@tools/setup.sh build

run: $(BUILD)/mica ## what the built-in model writes after a prompt, and how fast
	@$(BUILD)/mica run -p 'First Citizen:' -n 200

test: all $(PROGRAMS:@metal=) ## every test, example and check; about a quarter of an hour on two cores
	@tools/setup.sh test
	@tests/run.sh $(PROGRAMS) $(SCRIPTS)

test-programs: $(PROGRAMS:@metal=) $(SOFTMETAL) ## only the test programs and examples (see ONLY, RUN)
	@tools/setup.sh test
	@tests/run.sh $(PROGRAMS)

test-quick-sanitize: ## the same programs under ASan and UBSan
	@$(MAKE) --no-print-directory test-programs BUILD=$(BUILD)/asan SANITIZE=address,undefined DEBUG=1

# What has code of its own for a CPU, and what it is checked with.
ARM_TESTS = /codegen/test_chain /unit/test_gemm /unit/test_kernels /unit/test_rows /unit/test_random /unit/test_quant \
	/unit/test_qmatmul /models/ /parity/test_golden /parity/test_parity_broadcast
# softmetal loads what it builds, so that it cannot be static: qemu has to know where the libraries are.
test-arm: ## the kernels, the models and softmetal compiled for ARM, under qemu-user (Linux)
	@tools/setup.sh test-arm
	@tests/stages.sh \
		"make test-programs BUILD=$(BUILD)/aarch64 CC=aarch64-linux-gnu-gcc LDFLAGS=-static RUN=qemu-aarch64 \
			ONLY='$(ARM_TESTS)'" \
		"QEMU_LD_PREFIX=/usr/aarch64-linux-gnu make test-programs BUILD=$(BUILD)/aarch64-softmetal \
			CC=aarch64-linux-gnu-gcc RUN=qemu-aarch64 ONLY=/softmetal/tests/"

# macOS as far as tools/macos tells it; what comes out is for its compiler's and linker's eyes.
cross-macos: ## the library and the command for macOS on ARM, compiled and linked only (Linux)
	@tools/setup.sh cross-macos
	@$(MAKE) --no-print-directory all BUILD=$(BUILD)/macos MAC=Darwin AR=llvm-ar-19 OPTIMISE='-O1 -DNDEBUG' \
		CC='clang-19 --target=arm64-apple-macos13 -isysroot tools/macos' LDFLAGS=-fuse-ld=lld
	@BUILD=$(BUILD)/macos tests/macos.sh

fuzz: ## each fuzzer for FUZZ_SECONDS (clang)
	@$(MAKE) --no-print-directory run-fuzzers BUILD=$(BUILD)/fuzz CC=clang DEBUG=1 \
		SANITIZE=address,undefined,fuzzer-no-link
run-fuzzers: RUN = tests/fuzz/run_fuzzer.sh $(FUZZ_SECONDS)
run-fuzzers: $(FUZZERS)
	@tests/run.sh $(FUZZERS)

VALGRIND = valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect,possible
test-long: ## both compilers, all sanitizers, valgrind, fuzzers, ARM under qemu
	@tools/setup.sh test-long
	@tests/stages.sh \
		"make test BUILD=$(BUILD)/gcc CC=gcc MICA_TEST_DENSE=1" \
		"make test BUILD=$(BUILD)/clang CC=clang" \
		"make test-programs BUILD=$(BUILD)/asan-clang CC=clang SANITIZE=address,undefined DEBUG=1" \
		"make test-programs BUILD=$(BUILD)/tsan CC=clang SANITIZE=thread" \
		"make test-programs BUILD=$(BUILD)/gcc CC=gcc ONLY=/unit/ RUN='$(VALGRIND)'" \
		"make test-programs BUILD=$(BUILD)/aarch64 CC=aarch64-linux-gnu-gcc LDFLAGS=-static RUN=qemu-aarch64" \
		"make fuzz FUZZ_SECONDS=$(FUZZ_SECONDS)"

COVER ?= src/backend
covered: SCRIPTS = $(wildcard $(patsubst e2e/%,tests/e2e/%.sh,$(filter e2e/%,$(ONLY))))
covered: $(PROGRAMS:@metal=) $(SOFTMETAL) $(BUILD)/mica
	@find $(BUILD) -name '*.gcda' -delete
	@tests/run.sh $(PROGRAMS) $(SCRIPTS)

# ONLY may name scripts too: e2e/tune. Kernels are compiled anew, into a cache that nobody else trims.
coverage: export TEST_TIMEOUT = 3600
coverage: ## which lines of COVER='src/backend nn' and which Metal functions the tests run (gcc; see ONLY)
	@mkdir -p $(BUILD)/coverage && rm -f $(BUILD)/coverage/shaders
	@SM_CHECK=0 SM_COVER=$(abspath $(BUILD))/coverage/shaders SM_CACHE=$(abspath $(BUILD))/coverage/kernels \
		$(MAKE) --no-print-directory covered BUILD=$(BUILD)/coverage CC=gcc CFLAGS='--coverage -Wno-maybe-uninitialized' LDFLAGS=--coverage
	@BUILD=$(BUILD)/coverage tools/coverage.sh $(COVER)
	@tools/shader_coverage.sh $(BUILD)/coverage/shaders $(wildcard src/kernels/*/*.metal) src/codegen/mica_msl.h

bench: $(BUILD)/mica ## measure ops and kernels against this machine's peaks (BENCH='--list')
	@$(BUILD)/mica bench $(BENCH)

bench-peers: $(BUILD)/mica ## the same work with numpy, torch, mlx, OpenBLAS and oneDNN, in turns
	@tools/peers.sh $(BUILD)/peers
	@python3 bench/peers.py --mica $(BUILD)/mica --peers $(BUILD)/peers --out $(BUILD)/bench $(PEERS)

ROOT = $(DESTDIR)$(PREFIX)
install: all ## header, libraries, mica.pc and the command, under DESTDIR PREFIX
	install -d $(ROOT)/include $(ROOT)/lib/pkgconfig $(ROOT)/bin
	install -m 644 include/*.h $(ROOT)/include/
	install -m 644 $(LIBRARY) $(ROOT)/lib/
	install -m 755 $(SHARED) $(ROOT)/lib/$(call shared,.$(VERSION))
	ln -sf $(call shared,.$(VERSION)) $(ROOT)/lib/$(SONAME)
	ln -sf $(SONAME) $(ROOT)/lib/$(notdir $(SHARED))
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' tools/mica.pc.in > $(ROOT)/lib/pkgconfig/mica.pc
	install -m 755 $(BUILD)/mica $(ROOT)/bin/

FORMATTER = $(if $(MAC),clang-format,clang-format-19)
# Not the headers that are C++ of Metal's names.
format: ## clang-format over every C file
	@tools/setup.sh format
	find include src nn models cli bench examples tests softmetal -name '*.[ch]' ! -path '*/shim/*' ! -name lint_header.h | \
		xargs $(FORMATTER) -i

clean: ## remove BUILD
	rm -rf $(BUILD)

help: ## this text
	@sed -n '3,/^$$/s/^#   /  /p' Makefile
	@sed -n 's/^\([a-z-]*\):.* ## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "  make %-20s %s\n", $$1, $$2 }'

.PHONY: FORCE all setup run test test-programs test-quick-sanitize test-arm cross-macos fuzz run-fuzzers test-long coverage covered bench bench-peers \
	install format clean help
