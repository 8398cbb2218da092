#!/usr/bin/env bash
# How a failure changes the counts and the exit code of a test program and of the
# runner. With a harness that never fails, every other test would be worthless.
# runs: check
. tests/check.sh

cat > "$work/test_demo.c" << 'END'
#include "test.h"
#include <math.h>
#include <stdlib.h>

TEST(passes) { CHECK(true); }
TEST(fails) { CHECK_INT(1, 2); abort(); }
TEST(goes_on) { EXPECT(false); EXPECT_STR("a", NULL); }
TEST(nan_fails) { CHECK_CLOSE(NAN, NAN, 1.0, 1.0); }
TEST(skips) { SKIP("no %s", "reason"); }
TEST(cases)
{
    for (int i = 0; i < 4; i++) {
        test_case("i = %d", i);
        if (i == 1) { test_skip("odd"); continue; }
        EXPECT_MSG(i != 2, "i is %d", i);
    }
}
TEST(fails_before_its_cases) { EXPECT(false); test_case("good"); }
TEST(crashes) { if (getenv("DEMO_CRASH")) abort(); }
END
check 'compile' $CC -std=c11 -D_GNU_SOURCE -Itests/kit "$work/test_demo.c" tests/kit/test.c -lm -lpthread -o "$work/test_demo"

run "$work/test_demo"
check 'failures give exit code 1' test "$status" = 1
check 'counts' test "$(printf '%s\n' "$out" | tail -n 1)" = '5 passed, 5 failed, 2 skipped'
check 'a failure names file, line and values' contains "$out" 'test_demo.c:6: fails: 1 is 1, not 2'
check 'a failure names its case' contains "$out" 'cases: i = 2: i is 2'
check 'a skip says why' contains "$out" 'SKIP skips: no reason'
run "$work/test_demo" passes
check 'a filter selects' test "$status:$out" = '0:1 passed, 0 failed, 0 skipped'
run "$work/test_demo" nonsense
check 'a filter that selects nothing fails' test "$status" = 1
run "$work/test_demo" -l
check '-l lists' test "$(printf '%s\n' "$out" | wc -l)" -eq 8
run "$work/test_demo" -v cases
check '-v shows each case' contains "$out" 'ok   cases: i = 3'
run env DEMO_CRASH=1 "$work/test_demo"
check 'a crash says where' contains "$out" 'stopped by a signal in crashes'

# The runner: BUILD/tests/* must print the closing line; for other programs the exit code is enough.
mkdir -p "$work/tests" "$work/examples"
script() { printf '#!/bin/sh\n%s\n' "$2" > "$work/$1" && chmod +x "$work/$1"; }
script tests/good 'echo 3 passed, 0 failed, 1 skipped'
script tests/bad 'echo oh no; echo 1 passed, 2 failed, 0 skipped; exit 1'
script tests/silent 'exit 0'
script tests/crash 'kill -9 $$'
script tests/leak 'echo 4 passed, 0 failed, 0 skipped; echo leak found; exit 23'
script examples/good 'exit 0'
script examples/bad 'exit 1'
script examples/skip 'exit 77'
run env BUILD="$work" tests/run.sh "$work"/tests/* "$work"/examples/*
check 'the runner fails' test "$status" = 1
check 'the runner adds up' test "$(printf '%s\n' "$out" | tail -n 1)" = '9 passed, 6 failed, 2 skipped'
check 'the runner shows what failed' contains "$out" 'oh no'
run env BUILD="$work" tests/run.sh "$work/tests/good" "$work/examples/good"
check 'the runner succeeds' test "$status:$(printf '%s\n' "$out" | tail -n 1)" = '0:4 passed, 0 failed, 1 skipped'

run tests/stages.sh 'echo 1 passed, 1 failed, 1 skipped; exit 1' 'echo 2 passed, 0 failed, 0 skipped' 'exit 1'
check 'stages add up' test "$status:$(printf '%s\n' "$out" | tail -n 1)" = '1:3 passed, 2 failed, 1 skipped'

# The line `runs:` of a test.
printf '/* A test.\n *\n * runs: metal, arm */\n' > "$work/test_a.c"
printf '#!/bin/sh\n# A script.\n# runs: check\n' > "$work/b.sh"
run tests/tags.sh "$work/test_a.c" "$work/b.sh"
check 'tags: each word with its path' test "$out" = "metal:$work/test_a"$'\n'"arm:$work/test_a"$'\n'"check:$work/b.sh"
printf '/* runs: metall */\n' > "$work/test_a.c"
run tests/tags.sh "$work/test_a.c"
check 'tags: an unknown word is an error' contains "$out:$err" 'error:'"$work/test_a.c:1: runs: there is no word \"metall\""

# compile_commands.json has a command for every source.
if command -v python3 > /dev/null && [ -z "${RUN:-}" ]; then
    make -s -nB V=1 "$BUILD/libmica.a" 2> /dev/null | tools/compile_commands.sh > "$work/commands.json"
    check 'compile_commands.json: an entry for a source' python3 -c '
import json, sys
entries = json.load(open(sys.argv[1]))
[one] = [e for e in entries if e["file"] == "src/base/alloc.c"]
sys.exit("-Isrc" not in one["command"])' "$work/commands.json"
fi

# The order of folders is checked: a copy with one include to the right fails.
mkdir -p "$work/copy/tools" "$work/copy/src/base"
cp tools/check_layers.sh "$work/copy/tools/"
echo '#include "base/status.h"' > "$work/copy/src/base/good.c"
run "$work/copy/tools/check_layers.sh"
check 'an include to the left is allowed' test "$status" = 0
echo '#include "graph/ops.h"' > "$work/copy/src/base/bad.c"
run "$work/copy/tools/check_layers.sh"
check 'an include to the right is refused' test "$status" = 1
mkdir -p "$work/copy/cli/core" && rm "$work/copy/src/base/bad.c"
echo '#include "core/cli.h"' > "$work/copy/cli/core/good.c"
run "$work/copy/tools/check_layers.sh"
check 'a room of cli/ includes itself' test "$status" = 0
echo '#include "lm/model.h"' > "$work/copy/cli/core/bad.c"
run "$work/copy/tools/check_layers.sh"
check 'a room of cli/ does not include one to its right' test "$status" = 1
finish
