#!/bin/sh
# Turns the compile commands on stdin (make -nB V=1) into compile_commands.json: make compile_commands.json
exec awk -v folder="$(pwd)" '
    function quoted(text) { gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }
    match($0, / -c [^ ]+\.c -o /) {
        file = substr($0, RSTART + 4, RLENGTH - 8)
        if (file in seen) next # nn/ and models/ are compiled a second time for fault injection tests
        seen[file] = 1
        printf "%s  {\"directory\": %s, \"file\": %s, \"command\": %s}", n++ ? ",\n" : "[\n", quoted(folder), quoted(file), quoted($0)
    }
    END { print n ? "\n]" : "[]" }'
