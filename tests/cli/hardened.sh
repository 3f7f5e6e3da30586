# What the linker and the compiler were told about the program, the library and the plugins (CMakeLists.txt), read out of the files: no
# executable stack, no segment that is both written and executed, read-only relocations bound at start, position-independent program,
# checked calls of the C library, stack protector, landing pads of indirect branches.
failed=0
fail() { echo "FAILED: $*"; failed=1; }
command -v readelf >/dev/null || { echo "SKIPPED: readelf is not there"; exit 0; }
grep -q '^CMAKE_BUILD_TYPE:STRING=Release' "$SODET_BUILD/CMakeCache.txt" && ! grep -qE '^SODET_SANITIZE:[A-Z]+=.+' "$SODET_BUILD/CMakeCache.txt" ||
    { echo "not a release build: nothing to look at"; exit 0; }
landing=$(uname -m | grep -c x86_64)

lacks() { # file: prints what it lacks, one a line
    local file=$1 segments dynamic symbols sections
    segments=$(readelf -lW "$file") dynamic=$(readelf -dW "$file") symbols=$(readelf --dyn-syms -W "$file" | awk '$7 == "UND" { print $8 }' | sed 's/@.*//')
    grep -qE '^ +GNU_STACK .* RW +0x' <<<"$segments" || echo "a stack that is not executed (GNU_STACK RW)"
    ! grep -qE '^ +LOAD .* RWE +0x' <<<"$segments" || echo "segments that are written or executed, not both"
    grep -q 'GNU_RELRO' <<<"$segments" || echo "read-only relocations (GNU_RELRO)"
    grep -qE '\(FLAGS(_1)?\).*NOW' <<<"$dynamic" || echo "relocations bound at start (BIND_NOW)"
    ! grep -q 'TEXTREL' <<<"$dynamic" || echo "code without relocations (TEXTREL)"
    ! grep -qE 'R(UN)?PATH.*\[[^]]*(::|^:|:$)' <<<"$dynamic" || echo "a search path without the working directory (RUNPATH)"
    # With _FORTIFY_SOURCE these are never called plainly.
    symbols=$(grep -xE '(v?f?printf|v?sn?printf|__read_chk|__stack_chk_fail|__[a-z]+_chk)' <<<"$symbols" || true)
    ! grep -qxE 'v?f?printf' <<<"$symbols" || echo "checked calls of the C library (_FORTIFY_SOURCE): it calls $(grep -xE 'v?f?printf' <<<"$symbols" | tr '\n' ' ')"
    case "$file" in
    */bin/sodet | */libsodet.so*)
        grep -q '_chk$' <<<"$symbols" || echo "checked calls of the C library (_FORTIFY_SOURCE)"
        grep -q '^__stack_chk_fail$' <<<"$symbols" || echo "a stack protector"
        ;;
    esac
    readelf -hW "$file" | grep -qE 'Type: +DYN' || echo "a position-independent program (PIE)"
}
# Landing pads (endbr64) of functions that are called through pointers; a plugin has some, since its table holds such.
pads() { LC_ALL=C grep -aoP '\xf3\x0f\x1e\xfa' "$1" | wc -l; }

# A file that was made without any of it is seen to lack it.
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
cc=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$SODET_BUILD/CMakeCache.txt")
echo 'int printf(const char *, ...); int f(int x) { printf("%d", x); return x; }' >"$work/soft.c"
"$cc" -O2 -shared -fPIC -fcf-protection=none -U_FORTIFY_SOURCE -Wl,-z,lazy,-z,norelro,-z,execstack "$work/soft.c" -o "$work/soft.so" || fail "the soft file was not made"
for word in GNU_STACK GNU_RELRO BIND_NOW FORTIFY; do lacks "$work/soft.so" | grep -q "$word" || fail "what lacks $word is not seen"; done
none=$(pads "$work/soft.so") # of the C library's own code that is in every file

looked=0
for file in "$SODET_BUILD"/bin/sodet "$SODET_BUILD"/lib/libsodet.so "$SODET_BUILD"/lib/sodet/*/*.so; do
    file=$(readlink -f "$file") looked=$((looked + 1))
    while read -r what; do [ -z "$what" ] || fail "${file#"$SODET_BUILD"/} lacks $what"; done < <(lacks "$file")
    [ "$landing" = 0 ] || [ "$(pads "$file")" -gt "$none" ] || fail "${file#"$SODET_BUILD"/} lacks landing pads (-fcf-protection)"
done
readelf -dW "$SODET_BUILD/bin/sodet" | grep -q 'FLAGS_1.*PIE' || fail "bin/sodet is not linked as a program at any address (PIE)"
[ $looked -ge 20 ] || fail "only $looked files were looked at"

[ $failed = 0 ] && echo "$looked files: hardened"
exit $failed
