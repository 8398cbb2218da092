# mica: no configure step. `make help` lists the targets. The parts of this file are in mk/ and softmetal/softmetal.mk.
#
#   BUILD=build                where everything built goes; delete it and nothing is lost
#   CC=cc                      gcc or clang
#   DEBUG=1                    -O1, assertions, and the verifier after each pass
#   WERROR=1                   warnings are errors, as in CI
#   SANITIZE=address,undefined or thread; give it a BUILD of its own
#   ONLY='/parity/ /grad/'     of the test programs, those with one of these in their path
#   TIER=arm                   of the test programs, those with this word in their line `runs:` (tests/tags.sh)
#   RUNS=10000000 SEED=1       inputs for each parser of make differential (20000), and where they begin
#   COVER='src/backend nn'     folders that make coverage reports
#   COMPILERS='gcc-13 clang'   compilers of make compilers
#   RUN=qemu-aarch64           put this before each test program (make test-programs)
#   BENCH='--threads 1 norm'   arguments of mica bench; PEERS='--rounds 5': of bench/peers.py
#   PREFIX=/usr/local DESTDIR= where install puts things
#   JOBS=2                     how many at once; all cores if not given

BUILD    ?= build
PREFIX   ?= /usr/local
ONLY     ?= /
JOBS     ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
MAC      ?= $(filter Darwin,$(shell uname -s))
VERSION  := $(shell sed -n 's/^.define MICA_VERSION_STRING "\(.*\)"/\1/p' include/mica.h)
COMMIT    = $(shell test -e .git && git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)

# The scripts work on the same build, and may call make again.
export BUILD CC CFLAGS LDFLAGS DEBUG SANITIZE WERROR RUN JOBS
ifneq ($(MICA_TEST_DENSE),) # set means dense, even to nothing
export MICA_TEST_DENSE
endif

# Parallel by default. Sub-makes share the job slots of the outermost one.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(JOBS)
endif

.DEFAULT_GOAL := all

# ---------------------------------------------------------------- products ---

# One short line for each thing made; V=1 shows the commands.
quiet     = $(if $(V),,@echo '  $(1)';)
objects   = $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(1)))
programs  = $(patsubst %.c,$(BUILD)/%,$(wildcard $(1)))

LIBRARY  := $(BUILD)/libmica.a
LIB_OBJ  := $(call objects,src/*/*.c src/*/*/*.c text/*.c nn/*.c models/*/*.c)
CLI_OBJ  := $(call objects,cli/*.c cli/*/*.c)
SOURCES  := $(patsubst $(BUILD)/%.o,%.c,$(LIB_OBJ) $(CLI_OBJ)) $(wildcard examples/*.c tests/*/*.c softmetal/*/*.c)

# libmica.so.1.2.3 on Linux, libmica.1.2.3.dylib on macOS, given ".1.2.3".
shared    = $(if $(MAC),libmica$(1).dylib,libmica.so$(1))
SHARED   := $(BUILD)/$(call shared,)
SONAME   := $(call shared,.$(firstword $(subst ., ,$(VERSION))))
SHARED_FLAGS = $(if $(MAC),-dynamiclib -install_name $(PREFIX)/lib/$(SONAME),-shared -Wl,-soname,$(SONAME)) \
	$(if $(DEBUG)$(SANITIZE),,-Wl,-S) # debug information is five times the code; libmica.a keeps it

# Sources with flags of their own: the version of the command, and the model inside the library, if there is one.
VERSION_SOURCE := $(wildcard cli/version.c cli/*/version.c)
BUILTIN_SOURCE := models/lm/builtin.c
BUILTIN        := $(firstword $(wildcard models/builtin/*.gguf))

# The Metal device in software: needs dlopen, so no static build has it.
ifeq ($(MAC)$(findstring -static,$(LDFLAGS)),)
include softmetal/softmetal.mk
endif
include mk/tests.mk mk/flags.mk mk/install.mk mk/cross.mk mk/develop.mk

# ------------------------------------------------------------------- rules ---

all: $(LIBRARY) $(SHARED) $(BUILD)/mica $(SOFTMETAL) $(SM_LINT) $(SM_COUNT) ## the library, static and shared, and the command

$(LIBRARY): $(LIB_OBJ)
$(LIBRARY) $(HELPERS):
	@rm -f $@
	$(call quiet,ar $@)$(AR) rcs $@ $^

$(SHARED): $(LIB_OBJ)
	$(call quiet,ld $@)$(CC) $(SHARED_FLAGS) $(ALL_LDFLAGS) $^ $(LIBS) -o $@

LINK = $(call quiet,ld $@)$(CC) $(ALL_LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -o $@

$(BUILD)/mica: $(CLI_OBJ) $(LIBRARY)
	$(LINK)

$(BUILD)/%.o: %.c Makefile mk/flags.mk $(BUILD)/flags | setup
	@mkdir -p $(@D)
	$(call quiet,cc $<)$(COMPILE) -MMD -MP -c $< -o $@

-include $(SOURCES:%.c=$(BUILD)/%.d)

# What these objects contain besides C: the commit, the model, the text of the Metal kernels.
$(VERSION_SOURCE:%.c=$(BUILD)/%.o): $(BUILD)/commit
$(BUILTIN_SOURCE:%.c=$(BUILD)/%.o): $(BUILTIN)
$(BUILD)/src/backend/metal/shaders.o: src/simd/polynomials.h $(wildcard src/codegen/*_msl.h src/kernels/*/*.metal src/kernels/*/*_params.h)

# Files that change only when their text does: objects built with other flags,
# or from another commit, are built again.
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

clean: ## remove BUILD
	rm -rf $(BUILD)

help: ## this text
	@sed -n '3,/^$$/s/^#   /  /p' Makefile
	@sed -n 's/^\([a-z_.-]*\):.* ## \(.*\)/\1|\2/p' Makefile mk/*.mk | awk -F'|' '{ printf "  make %-22s %s\n", $$1, $$2 }'

.PHONY: FORCE all setup run clean help
