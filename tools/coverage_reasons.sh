#!/usr/bin/env bash
# tools/coverage_reasons.sh: of rows "| `file` | `function` | `text` | lines" on stdin a table, with the reasons that rows
# "| `file` | `function` | `text` | reason |" of docs/*.md give; ? where there is none. For the other coverage scripts.
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
