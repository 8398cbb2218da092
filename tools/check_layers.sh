#!/bin/sh
# Checks the include order. Under src/ a folder may include itself and the folders to its
# left in the order below, as "folder/file.h". A folder that must call one to its right
# declares a struct of function pointers, which that folder fills in (backend.h).
# text/ may include base and io. All other folders include public headers and their own;
# models/ also includes nn/. A subfolder of models/ does not include another one. A subfolder
# of cli/ includes itself and the subfolders to its left in the order below.
set -eu
cd "$(dirname "$0")/.."
order='base machine simd quant memory io array graph cost plan codegen kernels backend runtime profile api'
rooms='core machine lm files series train bench'

find src text nn models cli bench examples -name '*.[ch]' -o -name '*.inc' -o -name '*.def' 2> /dev/null | sort |
    xargs grep -HE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' /dev/null |
    awk -F'"' -v order="$order" -v rooms="$rooms" '
        BEGIN { n = split(order, name, " "); for (i = 1; i <= n; i++) rank[name[i]] = i; n = split(rooms, name, " "); for (i = 1; i <= n; i++) room[name[i]] = i }
        {
            file = $1; sub(/:.*/, "", file)
            parts = split(file, path, "/"); folder = path[1] == "src" ? path[2] : path[1]
            target = $2; slash = index(target, "/"); into = slash ? substr(target, 1, slash - 1) : folder
            includes++
            if (target == "mica.h" || (target ~ /^mica_[a-z]+\.h$/ && (path[1] != "src" || folder == "api")) || into == folder || (folder == "models" && into == "nn")) next
            if (folder == "text" && (into == "base" || into == "io")) next
            if (folder == "cli" && into in room && room[into] <= room[path[2]]) next
            if (folder == "cli" && into in room) why = "cli/" path[2] " comes before cli/" into
            else if (path[1] != "src") why = folder " may include mica.h and its own headers only"
            else if (!(folder in rank)) why = "src/" folder " has no place in the order"
            else if (!(into in rank)) why = "there is no folder src/" into " in the order"
            else if (rank[into] > rank[folder]) why = folder " comes before " into
            else next
            print file ": includes \"" target "\": " why
            wrong++
        }
        END { print includes + 0 " includes checked, " wrong + 0 " wrong"; exit wrong > 0 }'
