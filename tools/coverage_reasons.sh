#!/usr/bin/env bash
# tools/coverage_reasons.sh: reads rows "| `file` | `function` | `text` | lines" from stdin and prints them as a table
# with the reasons of the rows "| `file` | `function` | `text` | reason |" in docs/*.md, or "?". Used by the other
# coverage scripts.
set -eu
awk -F ' [|] ' '
    { key = $1 "|" $2 "|" $3 }
    FILENAME != "-" {
        if (NF == 4 && /^\| `/) { why[key] = $4; sub(/ \|$/, "", why[key]) }
        next
    }
    {
        reason = key in why ? why[key] : "?"
        missing += reason == "?"
        print $1 " | " $2 " | " $3 " | " reason " | line " $4
    }
    END { printf "%d places were not reached, %d of them without a reason in docs\n", FNR, missing }
' docs/*.md -
