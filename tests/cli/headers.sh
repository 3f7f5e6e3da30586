#!/usr/bin/env bash
# Every public header stands alone, as strict C11 and as C++17.
set -uo pipefail
failed=0 n=0
for header in "$SODET_SOURCE"/include/sodet/*.h "$SODET_BUILD"/generated/sodet/*.h; do
    name=sodet/${header##*/}
    n=$((n + 1))
    flags="-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I$SODET_SOURCE/include -I$SODET_BUILD/generated"
    echo "#include \"$name\"" | ${CC:-cc} -std=c11 $flags -x c - || { echo "$name fails as C11"; failed=1; }
    if command -v "${CXX:-c++}" >/dev/null; then
        echo "#include \"$name\"" | ${CXX:-c++} -std=c++17 $flags -x c++ - || { echo "$name fails as C++17"; failed=1; }
    fi
done
[ "$n" -ge 8 ] || { echo "only $n headers"; failed=1; }
[ $failed -eq 0 ] && echo "$n headers"
exit $failed
