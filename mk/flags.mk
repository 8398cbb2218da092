# Compiler and linker flags: warnings, optimisation, sanitizers, include folders, CPU variants.
# Every object depends on this file.

# Warnings stop the build in CI only (WERROR=1, which .ci/run sets): a compiler newer than ours may have new ones.
WERROR  ?= $(filter-out 0 no false,$(CI))
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(if $(WERROR),-Werror)
OPTIMISE = $(if $(DEBUG),-O1 -DMICA_DEBUG=1,-O2 -DNDEBUG)
CHECKED  = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# Kernels that this CPU cannot run are only compiled. Instrumenting them would take most of that time.
ifeq ($(shell grep -c -m 1 avx512f /proc/cpuinfo 2>/dev/null),0)
$(foreach v,avx512 avx512vnni avx512bf16,$(eval $$(BUILD)/%_$(v).o: CHECKED =))
endif
# No contraction: a*b+c rounds twice on every machine, so that results agree.
ALL_CFLAGS = -std=c11 $(OPTIMISE) $(if $(SANITIZE)$(RUN),-g1,-g) -fPIC -fvisibility=hidden -ffp-contract=off $(WARNINGS) $(CHECKED) -Iinclude \
	$(if $(MAC),,-D_GNU_SOURCE) $(CFLAGS)
ALL_LDFLAGS = $(CHECKED) $(LDFLAGS)
LIBS     = -lm -lpthread

# Only the library and its tests may include the headers of src/.
INCLUDES_src       = -Isrc
INCLUDES_text      = -I. -Isrc
INCLUDES_models    = -I.
INCLUDES_cli       = -Icli
INCLUDES_tests     = -I. -Isrc -Itests -Itests/kit
INCLUDES_softmetal = -Isoftmetal
includes = $(INCLUDES_$(firstword $(subst /, ,$(1)))) $(if $(filter softmetal/tests/%,$(1)),-Itests/kit)

# A source file whose name ends in _avx2.c and the like is a variant for CPUs with
# that feature and gets the flags for it; on another architecture it gets none and
# compiles to nothing (#if defined(__AVX2__)). Which one runs is decided at run time
# (src/base/cpu.h).
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
variant = $(VARIANT_$(lastword $(subst _, ,$(basename $(notdir $(1))))))

# FLAGS_folder/file.c = ... gives more flags to one file.
FLAGS_$(VERSION_SOURCE) = -DMICA_COMMIT='"$(COMMIT)"'
ifneq ($(BUILTIN),)
$(foreach f,$(BUILTIN_SOURCE),$(eval FLAGS_$(f) = -DMICA_BUILTIN_MODEL='"$(BUILTIN)"'))
endif
# These tests pass 64-byte vectors, which this CPU may lack, between functions of one file.
$(foreach f,$(call tagged,wide-vectors),$(eval FLAGS_$(f).c = -Wno-psabi))

# The library runs on threads with stacks of 64 KB; sanitizers make frames larger (tests/api/test_small_stack.c).
$(LIB_OBJ): FRAMES = $(if $(SANITIZE),,-Wframe-larger-than=8192)

# How to compile the source $<.
COMPILE = $(CC) $(ALL_CFLAGS) $(FRAMES) $(call includes,$<) $(call variant,$<) $(FLAGS_$<)
