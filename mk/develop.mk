# Targets for work on mica itself: coverage, benchmarks, API reference, formatting, compile_commands.json.

COVER ?= src/backend
covered: SCRIPTS = $(wildcard $(patsubst e2e/%,tests/e2e/%.sh,$(filter e2e/%,$(ONLY))))
covered: $(PROGRAMS:@metal=) $(SOFTMETAL) $(BUILD)/mica
	@find $(BUILD) -name '*.gcda' -delete
	@tests/run.sh $(PROGRAMS) $(SCRIPTS)

# ONLY may name scripts too: e2e/tune. Kernels are compiled again, into a cache that no other process trims.
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

docs: ## the API reference (docs/api) from the headers
	@tools/api_reference.sh docs/api

FORMATTER = $(if $(MAC),clang-format,clang-format-19)
# .clang-format-ignore names what is left as it is: tables (.def), and headers in the language of Metal.
FORMATTED = find include src text nn models cli bench examples tests softmetal -name '*.[ch]'
format: ## clang-format over every C file
	@tools/setup.sh format
	$(FORMATTED) | xargs $(FORMATTER) -i

format-check: ## fails if make format would change a file
	@tools/setup.sh format
	@$(FORMATTED) | xargs $(FORMATTER) --dry-run --Werror

# The commands that make would run to build everything, as JSON for clangd and other tools.
compile_commands.json: FORCE ## the compile command of every source, for clangd
	@$(MAKE) --no-print-directory -nB V=1 all $(TESTS) $(REPLAYS) $(SM_TESTS) $(EXAMPLES) | tools/compile_commands.sh > $@
	@echo '  $@'

.PHONY: covered coverage bench bench-peers docs format format-check
