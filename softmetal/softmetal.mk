# softmetal: a Metal device in software, a separate product (softmetal/README.md).
# Included from the Makefile; does not depend on mica.

SM_SOURCES := $(wildcard softmetal/*/*.c)
SM_SOURCES := $(filter-out softmetal/tests/% softmetal/tools/%,$(SM_SOURCES))
SM_OBJ     := $(SM_SOURCES:%.c=$(BUILD)/%.o) $(patsubst %.S,$(BUILD)/%.S.o,$(wildcard softmetal/*/*.S))
SM_TESTS   := $(patsubst %.c,$(BUILD)/%,$(wildcard softmetal/tests/test_*.c))
SM_HELPERS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out softmetal/tests/test_%,$(wildcard softmetal/tests/*.c)))
SOFTMETAL  := $(BUILD)/libsoftmetal.so

# Its checker defines the functions that ThreadSanitizer's instrumentation calls, so the two cannot
# be in one library: with SANITIZE=thread it is built without the sanitizer, and its tests run in other builds only.
ifneq ($(findstring thread,$(SANITIZE)),)
$(SOFTMETAL): CHECKED =
SM_TESTS :=
endif

# Never unloaded: its threads run until the end of the process.
$(SOFTMETAL): $(SM_OBJ)
	$(call quiet,ld $@)$(CC) -shared -Wl,-soname,libsoftmetal.so -Wl,-z,defs -Wl,-z,nodelete $(ALL_LDFLAGS) $^ -ldl $(LIBS) -o $@

# The fibers switch stacks, which the sanitizers do not follow.
$(BUILD)/softmetal/runtime/%.o $(BUILD)/softmetal/check/%.o $(BUILD)/softmetal/count/tally.o: CHECKED =

$(BUILD)/softmetal/%.S.o: softmetal/%.S $(wildcard softmetal/shim/*.h) softmetal/msl/shim_files.def Makefile softmetal/softmetal.mk
	@mkdir -p $(@D)
	$(call quiet,as $<)$(CC) $(if $(MAC),,-D_GNU_SOURCE) -Wa,-Isoftmetal/shim,-I$(BUILD)/softmetal -c $< -o $@

# Preloaded into clang, where sanitizers and coverage runs cannot follow it.
$(BUILD)/softmetal/stay.so: softmetal/tools/stay.c Makefile softmetal/softmetal.mk
	@mkdir -p $(@D)
	$(call quiet,ld $@)$(CC) -std=c11 -O2 -fPIC -D_GNU_SOURCE -fvisibility=hidden $(WARNINGS) -shared -Wl,-s $< -ldl -o $@
$(BUILD)/softmetal/msl/stay_data.S.o: $(BUILD)/softmetal/stay.so

$(SM_TESTS): %: %.o $(SM_HELPERS) $(BUILD)/tests/kit/test.o $(SOFTMETAL)
	$(call quiet,ld $@)$(CC) $(ALL_LDFLAGS) $(filter %.o,$^) -L$(BUILD) -lsoftmetal -Wl,-rpath,'$$ORIGIN/../..' -ldl $(LIBS) -o $@

# The commands: smc builds the kernels of a .metal file, softmetal-lint finds errors that Apple's compiler reports,
# softmetal-count counts what a kernel costs.
SM_LINT  := $(BUILD)/softmetal-lint
SM_COUNT := $(BUILD)/softmetal-count
$(BUILD)/smc: $(BUILD)/softmetal/tools/smc.o $(SOFTMETAL)
$(SM_LINT): $(BUILD)/softmetal/tools/softmetal_lint.o $(SOFTMETAL)
$(SM_COUNT): $(BUILD)/softmetal/tools/softmetal_count.o $(BUILD)/softmetal/tools/count_arguments.o $(SOFTMETAL)
$(BUILD)/smc $(SM_LINT) $(SM_COUNT):
	$(call quiet,ld $@)$(CC) $(ALL_LDFLAGS) $(filter %.o,$^) -L$(BUILD) -lsoftmetal -Wl,-rpath,'$$ORIGIN' $(LIBS) -o $@
# its tests run the command
$(BUILD)/softmetal/tests/test_sm_count_memory: | $(SM_COUNT)
$(BUILD)/softmetal/lint/lint_data.S.o: softmetal/lint/lint_header.h
