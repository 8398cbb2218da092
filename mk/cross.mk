# Other compilers and other machines: every compiler at hand, ARM under qemu, macOS with a cross compiler.

# Every source, checked by the compiler's front end only: seconds instead of minutes.
SYNTAX_OF ?= src text nn models cli examples tests $(if $(MAC),,softmetal)
# tests/differential needs headers of other libraries; make differential compiles it.
SYNTAX    := $(patsubst %.c,syntax/%,$(filter-out tests/differential/%,$(filter $(addsuffix /%,$(SYNTAX_OF)),$(SOURCES))))
$(SYNTAX): syntax/%: %.c FORCE | setup
	$(call quiet,check $<)$(COMPILE) -fsyntax-only $<
syntax: $(SYNTAX)
	@echo '$(words $(SYNTAX)) sources without a warning: $(CC)'

# The oldest and the newest clang that Debian 12 has. gcc 12 is its only gcc that has what mica needs
# (__builtin_shufflevector), and make test compiles everything with it.
COMPILERS ?= clang-14 clang-19
compilers: ## every source without a warning through each of COMPILERS (front ends only)
	@COMPILERS='$(COMPILERS)' tools/setup.sh compilers
	@set -e; for compiler in $(COMPILERS); do $(MAKE) --no-print-directory syntax CC=$$compiler WERROR=1; done

# softmetal loads what it builds, so it cannot be linked statically: qemu has to know where the libraries are.
test-arm: ## programs tagged arm and softmetal compiled for ARM, under qemu-user (Linux)
	@tools/setup.sh test-arm
	@tests/stages.sh \
		"make test-programs BUILD=$(BUILD)/aarch64 CC=aarch64-linux-gnu-gcc LDFLAGS=-static RUN=qemu-aarch64 TIER=arm" \
		"QEMU_LD_PREFIX=/usr/aarch64-linux-gnu make test-programs BUILD=$(BUILD)/aarch64-softmetal \
			CC=aarch64-linux-gnu-gcc RUN=qemu-aarch64 ONLY=/softmetal/tests/"

# macOS as far as tools/macos describes it. The products are compiled and linked, the tests only compiled.
MACOS = BUILD=$(BUILD)/macos MAC=Darwin AR=llvm-ar-19 OPTIMISE='-O1 -DNDEBUG' LDFLAGS=-fuse-ld=lld \
	CC='clang-19 --target=arm64-apple-macos13 -isysroot tools/macos'
cross-macos: ## the library and the command for macOS on ARM compiled and linked, the tests compiled (Linux)
	@tools/setup.sh cross-macos
	@$(MAKE) --no-print-directory all $(MACOS)
	@$(MAKE) --no-print-directory syntax $(MACOS) SYNTAX_OF='tests examples'
	@BUILD=$(BUILD)/macos tests/macos.sh

.PHONY: syntax compilers test-arm cross-macos
