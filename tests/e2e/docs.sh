#!/usr/bin/env bash
# runs: check
# The documents are correct: links have targets, every page is in the index, the API reference equals the headers,
# ARCHITECTURE lists the folders that exist, and the C programs in the documents compile and run.
. tests/check.sh

pages=$(find . -name '*.md' -not -path './build/*' -not -path './.git/*' -not -path './.?*/*' | sed 's|^\./||' | LC_ALL=C sort)

# Prints "PAGE: TARGET" for each relative link of a page that has no file, or no heading for its #anchor.
broken_links()
{
    awk '
        function slug(title) {
            gsub(/`/, "", title); title = tolower(title); gsub(/[^a-z0-9 _-]/, "", title); gsub(/ /, "-", title)
            return title
        }
        # Anchors of a file; reads it once.
        function has_anchor(file, anchor,    line, fenced, title) {
            if (!(file in read_once)) {
                read_once[file] = 1
                while ((getline line < file) > 0) {
                    if (line ~ /^```/) fenced = !fenced
                    else if (!fenced && line ~ /^#+ /) { title = line; sub(/^#+ +/, "", title); anchors[file, slug(title)] = 1 }
                }
                close(file)
            }
            return (file, anchor) in anchors
        }
        function exists(path,    line) { return system("test -e \"" path "\"") == 0 }
        function resolve(from, target,    dir) {
            if (target == "") return from
            dir = from; if (!sub(/\/[^\/]*$/, "", dir)) dir = "."
            return dir "/" target
        }
        FNR == 1 { fenced = 0 }
        /^ *```/ { fenced = !fenced; next }
        fenced { next }
        {
            text = $0; gsub(/`[^`]*`/, "", text)
            while (match(text, /\]\([^)]*\)/)) {
                target = substr(text, RSTART + 2, RLENGTH - 3); text = substr(text, RSTART + RLENGTH)
                if (target ~ /^[a-z]+:/) continue
                anchor = target; if (!sub(/^[^#]*#/, "", anchor)) anchor = ""
                sub(/#.*/, "", target)
                path = resolve(FILENAME, target)
                if (!(path in known)) known[path] = exists(path)
                if (!known[path] || (anchor != "" && !has_anchor(path, anchor)))
                    print FILENAME ": " target (anchor != "" ? "#" anchor : "")
            }
        }' $pages
}
broken=$(broken_links)
check "links that lead nowhere:
$broken" test -z "$broken"
printf '# A\n[x](b.md) [y](#a) [z](#c) `[n](o.md)` [w](https://example.org)\n' > "$work/a.md"
check 'the link checker finds a missing file and a missing heading' test "$(pages=$work/a.md broken_links | wc -l)" = 2

# Files of documents that sources, scripts and pages name in text.
missing=$(grep -rhoE '\bdocs/[A-Za-z0-9_/-]+\.md' README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs include src text nn models cli \
    softmetal bench examples tests tools Makefile 2> /dev/null | sort -u | while read -r file; do test -e "$file" || echo "$file"; done)
check "documents that are named and do not exist: $missing" test -z "$missing"

# Every document is in the index, and names are uniform.
for page in $pages; do
    case $page in
        docs/README.md | docs/api/* | docs/adr/* | docs/speed/* | docs/releases/*) ;;
        docs/*)
            check "$page is in docs/README.md" grep -q "](${page#docs/})" docs/README.md
            check "$page is in upper case" test "$page" = "docs/$(basename "$page" .md | tr a-z A-Z).md"
            ;;
    esac
done
for page in docs/adr/*.md; do
    check "$page is in docs/README.md" grep -q "](adr/$(basename "$page"))" docs/README.md
done

# The API reference.
check 'the API reference is generated' tools/api_reference.sh "$work/api"
check 'docs/api is current: run make docs' diff -r "$work/api" docs/api
declared=$(grep -chE '^MICA_API' include/*.h | awk '{ n += $1 } END { print n }')
check "the index has the $declared functions of the headers" test "$(grep -c '^\[`mica_' "$work/api/README.md")" = "$declared"

# ARCHITECTURE: the order of the layers and the folders.
order=$(sed -n "s/^order='\(.*\)'/\1/p" tools/check_layers.sh)
check 'ARCHITECTURE has the order of tools/check_layers.sh' grep -qF "\`$(echo "$order" | sed 's/ / < /g')\`" docs/ARCHITECTURE.md
folders=$(for d in */ src/*/; do case $d in build*/ | src/ | include/) ;; *) echo "${d%/}" ;; esac; done | LC_ALL=C sort)
listed=$(sed -n '/^## Folders/,/^## /s/^| `\([a-z/_]*[a-z]\)\/*` |.*/\1/p' docs/ARCHITECTURE.md | LC_ALL=C sort)
check 'ARCHITECTURE lists the folders that exist' diff <(echo "$folders") <(echo "$listed")

# Unstable declarations: VERSIONING lists those that the headers mark.
marked=$(grep -hE '^MICA_API.*MICA_UNSTABLE' include/*.h | grep -oE 'mica_[a-z0-9_]+\(' | tr -d '(' | LC_ALL=C sort)
named=$(sed -n '/^## Unstable/,/^## /p' docs/VERSIONING.md | grep -oE '`mica_[a-z0-9_]+`' | tr -d '`' | LC_ALL=C sort)
check 'VERSIONING lists the functions marked MICA_UNSTABLE' diff <(echo "$marked") <(echo "$named")

# The changelog and the release notes contain the version of mica.h.
version=$(sed -n 's/^.define MICA_VERSION_STRING "\(.*\)"/\1/p' include/mica.h)
check "CHANGELOG has $version" grep -q "^## $version" CHANGELOG.md
check "there are release notes for $version" test -s "docs/releases/$version.md"

# Examples: numbered from 01 without gaps, each in the list.
number=0
for example in examples/*.c; do
    number=$((number + 1))
    check "$example has number $number" test "$(basename "$example" | cut -c1-3)" = "$(printf %02d_ $number)"
    check "$example is in examples/README.md" grep -q "]($(basename "$example"))" examples/README.md
done

# C programs of the documents.
program()
{
    awk -v want="$2" '/^```c$/ { n++; inside = n == want; next } /^```$/ { inside = 0 } inside' "$1"
}
program README.md 1 > "$work/tour.c"
check 'the README shows examples/01_tour.c' diff examples/01_tour.c "$work/tour.c"
for n in 1 2; do
    program docs/EMBEDDING.md $n > "$work/embed$n.c"
    check "program $n of EMBEDDING compiles" $CC -std=c11 -Wall -Wextra -Wpedantic -Iinclude ${SANITIZE:+-fsanitize=$SANITIZE} \
        "$work/embed$n.c" "$BUILD/libmica.a" ${LDFLAGS:-} -lm -lpthread -ldl -o "$work/embed$n"
    run "$work/embed$n"
    check "program $n of EMBEDDING runs ($err)" test "$status" = 0
    check "program $n of EMBEDDING prints something" test -n "$out"
done
finish
