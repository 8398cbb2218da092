# The test programs, which of them run in which tier, and the targets that run them.
# Each program says so itself, on the line `runs: ...` of its head comment (tests/tags.sh lists the words).

HELPERS  := $(BUILD)/tests/helpers.a
TESTS    := $(call programs,tests/*/test_*.c)
REPLAYS  := $(call programs,tests/fuzz/fuzz_*.c)
FUZZERS  := $(REPLAYS:$(BUILD)/tests/fuzz/%=$(BUILD)/fuzzers/%)
EXAMPLES := $(call programs,examples/*.c)
SCRIPTS   = $(wildcard tests/api/*.sh tests/e2e/*.sh) tools/check_layers.sh
FUZZ_SECONDS ?= 60

# "word:path" for each; the paths of programs have no .c.
TAGS     := $(shell tests/tags.sh $(wildcard tests/*/test_*.c softmetal/tests/test_*.c tests/*/*.sh))
ifneq ($(filter error,$(TAGS)),)
$(error a line `runs:` is wrong, see above)
endif
tagged    = $(patsubst $(1):%,%,$(filter $(1):%,$(TAGS)))
tests_of  = $(addprefix $(BUILD)/,$(call tagged,$(1)))

# The longest programs first, so that none of them runs alone at the end. NAME@metal is NAME on Metal (tests/run.sh).
FIRST     = $(call tests_of,first)
ON_METAL  = $(if $(SOFTMETAL),$(addsuffix @metal,$(call tests_of,metal) $(if $(SANITIZE),,$(call tests_of,metal-unsanitized))))
UNSUITED  = $(if $(SANITIZE),$(call tests_of,unsanitized))
ALL_TESTS = $(filter-out $(UNSUITED),$(filter $(FIRST),$(TESTS)) $(ON_METAL) $(filter-out $(FIRST),$(TESTS)) \
	$(SM_TESTS)) $(REPLAYS) $(EXAMPLES)

# What is run: of a tier (TIER=arm) the programs with that word, or all; of these, those that ONLY names.
in_tier   = $(if $(TIER),$(filter $(call tests_of,$(TIER)) $(addsuffix @metal,$(call tests_of,$(TIER)@metal)),$(1)),$(1))
named     = $(strip $(foreach o,$(1),$(findstring $(o),$(2))))
PROGRAMS  = $(foreach p,$(call in_tier,$(ALL_TESTS)),$(if $(call named,$(ONLY),$(p)),$(p)))

$(HELPERS): $(call objects,tests/kit/*.c)
$(EXAMPLES): %: %.o $(LIBRARY)
	$(LINK)
$(TESTS): %: %.o $(HELPERS) $(LIBRARY)
	$(LINK)
$(REPLAYS): %: %.o $(BUILD)/tests/fuzz/replay_main.o $(HELPERS) $(LIBRARY)
	$(LINK)
$(FUZZERS): $(BUILD)/fuzzers/%: $(BUILD)/tests/fuzz/%.o $(HELPERS) $(LIBRARY)
	@mkdir -p $(@D)
	$(LINK) -fsanitize=fuzzer

# nn/ and models/ use the public headers only and call malloc. Programs with the word `faults` are
# linked with a second build of them, in which the n-th allocation can be made to fail.
FAULTED  := $(patsubst %.c,$(BUILD)/faulted/%.o,$(wildcard nn/*.c models/*/*.c))
$(FAULTED): $(BUILD)/faulted/%.o: %.c Makefile mk/flags.mk $(BUILD)/flags | setup
	@mkdir -p $(@D)
	$(call quiet,cc $< with faults)$(COMPILE) -DMICA_FAULTED -include tests/kit/faulted.h -MMD -MP -c $< -o $@
$(call tests_of,faults): $(FAULTED)
-include $(FAULTED:.o=.d)

test: all $(PROGRAMS:@metal=) ## every test, example and check; about a quarter of an hour on two cores
	@tools/setup.sh test
	@tests/run.sh $(PROGRAMS) $(SCRIPTS)

# Two minutes on two cores, with the build after a change to one source; the first build takes longer.
check: ## the tests tagged check: two minutes after a small change
	@$(MAKE) --no-print-directory run-check TIER=check
run-check: all $(PROGRAMS:@metal=)
	@tools/setup.sh test
	@tests/run.sh $(PROGRAMS) $(filter %.sh,$(call tagged,check)) tools/check_layers.sh

test-programs: $(PROGRAMS:@metal=) $(SOFTMETAL) ## only the test programs and examples (see ONLY, TIER, RUN)
	@tools/setup.sh test
	@tests/run.sh $(PROGRAMS)

test-quick-sanitize: ## the same programs under ASan and UBSan
	@$(MAKE) --no-print-directory test-programs BUILD=$(BUILD)/asan SANITIZE=address,undefined DEBUG=1

# The programs of api/ and unit/ at -O1, which compiles in half the time of -O2; test-long has all programs.
test-tsan: ## the programs of tests/api and tests/unit under ThreadSanitizer (clang)
	@tools/setup.sh test-tsan
	@$(MAKE) --no-print-directory test-programs BUILD=$(BUILD)/tsan CC=clang SANITIZE=thread OPTIMISE='-O1 -DNDEBUG' \
		ONLY='/tests/api/ /tests/unit/'

fuzz: ## each fuzzer for FUZZ_SECONDS (clang)
	@$(MAKE) --no-print-directory run-fuzzers BUILD=$(BUILD)/fuzz CC=clang DEBUG=1 \
		SANITIZE=address,undefined,fuzzer-no-link
run-fuzzers: RUN = tests/fuzz/run_fuzzer.sh $(FUZZ_SECONDS)
run-fuzzers: $(FUZZERS)
	@tests/run.sh $(FUZZERS)

# Parsers against libraries (tests/differential). Not part of TESTS: make test does not need these libraries.
DIFFERS  := $(call programs,tests/differential/diff_*.c)
PEER_LIBS_diff_json    = -ljansson
PEER_LIBS_diff_inflate = -lz
PEER_LIBS_diff_regex   = -lpcre2-8
PEER_LIBS_diff_nfc     = -lutf8proc
RUNS ?= 20000
SEED ?= 1
$(BUILD)/tests/differential/diff_regex: $(BUILD)/tests/differential/regex_patterns.o
$(BUILD)/tests/differential/diff_jinja: $(addprefix $(BUILD)/tests/differential/,jinja_templates.o jinja_reasons.o)
$(DIFFERS): LIBS += $(PEER_LIBS_$(@F))
$(DIFFERS): %: %.o $(BUILD)/tests/differential/differential.o $(HELPERS) $(LIBRARY)
	$(LINK)
differential: ## parsers against zlib, jansson, PCRE2, utf8proc and jinja2: RUNS inputs each, from SEED
	@tools/setup.sh differential
	@$(MAKE) --no-print-directory run-differential
run-differential: RUN = tests/differential/run.sh $(RUNS) $(SEED) $(JOBS)
run-differential: export TEST_TIMEOUT = 86400
run-differential: $(foreach p,$(DIFFERS),$(if $(call named,$(ONLY),$(p)),$(p)))
	@JOBS=1 tests/run.sh $^

VALGRIND = valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect,possible
test-long: ## both compilers, all sanitizers, valgrind, fuzzers, parsers against libraries, ARM under qemu
	@tools/setup.sh test-long
	@tests/stages.sh \
		"make test BUILD=$(BUILD)/gcc CC=gcc MICA_TEST_DENSE=1" \
		"make test BUILD=$(BUILD)/clang CC=clang" \
		"make test-programs BUILD=$(BUILD)/asan-clang CC=clang SANITIZE=address,undefined DEBUG=1" \
		"make test-programs BUILD=$(BUILD)/tsan-long CC=clang SANITIZE=thread" \
		"make test-programs BUILD=$(BUILD)/gcc CC=gcc ONLY=/unit/ RUN='$(VALGRIND)'" \
		"make test-programs BUILD=$(BUILD)/aarch64 CC=aarch64-linux-gnu-gcc LDFLAGS=-static RUN=qemu-aarch64" \
		"make fuzz FUZZ_SECONDS=$(FUZZ_SECONDS)" \
		"make differential BUILD=$(BUILD)/gcc CC=gcc" \
		"make differential BUILD=$(BUILD)/asan-clang CC=clang SANITIZE=address,undefined DEBUG=1"

.PHONY: test check run-check test-programs test-quick-sanitize test-tsan fuzz run-fuzzers differential run-differential test-long
