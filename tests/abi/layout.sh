#!/usr/bin/env bash
# The layout of every public struct (include/sodet/*.h and the operators' headers) against the recorded one.
#   tests/abi/layout.sh            compares; a struct that is not recorded fails, too
#   tests/abi/layout.sh --record   writes layout-0.txt anew: only with a change of SODET_ABI_MAJOR or MINOR, or while the major is 0
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${SODET_BUILD:-$root/build/release}
recorded=$root/tests/abi/layout-0.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

headers=$(cd "$root" && ls include/sodet/*.h kernels/*/*.h 2>/dev/null | while read -r h; do
    case $h in
    kernels/*) op=$(basename "$h" .h); grep -q "^OP($op," kernels/ops.def && [ "$(basename "$(dirname "$h")")" = "$op" ] && echo "$h" ;;
    *) echo "$h" ;;
    esac
done || true)

# From "typedef struct x { ... } x;" a line of C for the struct and one for each field. Comments and bit fields: the first are cut, the
# second are an error (their layout is the compiler's).
parse='
function field(decl,    n, parts, i, name) {
    gsub(/[ \t\n]+/, " ", decl)
    if (decl ~ /\{/) { print "nested struct in " struct > "/dev/stderr"; exit 3 }
    if (decl ~ /:/) { print "bit field in " struct > "/dev/stderr"; exit 3 }
    if (match(decl, /\( ?\* ?(const )?[A-Za-z_0-9]+ ?\) ?\(/)) {
        name = substr(decl, RSTART, RLENGTH); gsub(/[()* ]|const/, "", name); emit(name); return
    }
    n = split(decl, parts, ",")
    for (i = 1; i <= n; i++) {
        name = parts[i]; sub(/\[.*$/, "", name); sub(/ +$/, "", name); sub(/^.*[ *]/, "", name)
        if (name != "") emit(name)
    }
}
function emit(name) { printf "    F(%s, %s)\n", struct, name }
{ text = text $0 "\n" }
END {
    while (match(text, /\/\*[^*]*\*+([^\/*][^*]*\*+)*\//)) text = substr(text, 1, RSTART - 1) " " substr(text, RSTART + RLENGTH)
    gsub(/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)/, "", text)
    while (match(text, /typedef struct [a-z_0-9]+ *\{[^}]*\} *[a-z_0-9]+ *;/)) {
        whole = substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH)
        struct = whole; sub(/^typedef struct /, "", struct); sub(/[ {].*$/, "", struct)
        body = whole; sub(/^[^{]*\{/, "", body); sub(/\}[^}]*$/, "", body)
        printf "    S(%s)\n", struct
        n = split(body, decls, ";")
        for (k = 1; k <= n; k++) if (decls[k] ~ /[A-Za-z]/) field(decls[k])
    }
}'
{
    echo '#include <stddef.h>'
    echo '#include <stdio.h>'
    for h in $headers; do
        case $h in
        kernels/*) echo "#include \"sodet/ops/$(basename "$h")\"" ;;
        *) echo "#include \"sodet/$(basename "$h")\"" ;;
        esac
    done
    echo '#define S(s) printf("%s %zu\n", #s, sizeof(s));'
    echo '#define F(s, f) printf("  %s.%s %zu %zu\n", #s, #f, offsetof(s, f), sizeof(((s *)0)->f));'
    echo 'int main(void) {'
    for h in $headers; do awk "$parse" "$root/$h"; done
    echo '    return 0; }'
} >"$work/layout.c"
${CC:-cc} -std=c11 -w -I"$root/include" -I"$build/generated" -o "$work/layout" "$work/layout.c"
{
    echo "# struct, bytes; field, offset, bytes. 64-bit machines, ABI major 0. Made by tests/abi/layout.sh --record"
    "$work/layout"
} >"$work/now.txt"

# Nothing may escape the parser: as many structs as the headers open.
there=$(cd "$root" && cat $headers | grep -cE '^typedef struct [a-z_0-9]+ *\{')
found=$(grep -cE '^[a-z]' "$work/now.txt")
[ "$there" -eq "$found" ] || { echo "layout: the headers open $there structs, $found were read"; exit 1; }
[ "$found" -ge 40 ] || { echo "layout: only $found structs"; exit 1; }

if [ "${1:-}" = --record ]; then
    cp "$work/now.txt" "$recorded"
    echo "recorded $found structs"
    exit 0
fi
if ! diff -u "$recorded" "$work/now.txt"; then
    echo "layout: the public structs differ from tests/abi/layout-0.txt (- recorded, + now). Append fields at the end and raise the minor"
    echo "number of the ABI; an insertion or removal needs another major. Then: tests/abi/layout.sh --record"
    exit 1
fi
echo "$found structs as recorded"
