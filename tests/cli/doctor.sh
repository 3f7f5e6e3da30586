#!/usr/bin/env bash
# sodet doctor: its lines, its JSON, and what it says of limits, libraries and plugins that are made bad on purpose.
. "$SODET_SOURCE/tests/cli/lib"
state() { sed -n "s|^\([a-z]*\) *$1  *.*|\1|p" <<<"$out"; } # of a check
is() { checks=$((checks + 1)); [ "$(state "$1")" = "$2" ] || bad "$1 is \"$(state "$1")\", expected $2"; }
within() { # command, then as run
    local first=$1
    shift
    (eval "$first"; exec "$sodet" "$@") >"$work/.out" 2>"$work/.err" </dev/null
    code=$? out=$(cat "$work/.out") err=$(cat "$work/.err") line="$first; sodet $*"
}
run doctor; is_code 0; err_empty
for name in processors memory "huge pages" plugins libraries limits/nofile limits/memlock disk; do
    checks=$((checks + 1)); [[ $(state "$name") =~ ^(ok|note)$ ]] || bad "$name is \"$(state "$name")\""
done
is "device cpu" ok; is "device ref" ok; is libraries/onednn ok
out_has "processor "; out_has "oneDNN "; out_has " refused, in "
checks=$((checks + 1)); grep -v -E '^(ok|note|bad)  ? ? ?[a-z]|^  *-> ' <<<"$out" && bad "a line of another form"
lines=$(grep -c -E '^(ok|note|bad)' <<<"$out")
run doctor --json; is_code 0; err_empty
checks=$((checks + 1)); [ "$(grep -c '^  {"name": ".*", "state": "[a-z]*", "found": ".*", "advice": ".*"}' <<<"$out")" = "$lines" ] || bad "not $lines checks"
out_has '"bad": 0}'
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; d = json.load(sys.stdin); assert len(d["checks"]) == int(sys.argv[1]) and d["bad"] == 0' "$lines" <<<"$out"
    code=$?; is_code 0
fi
run doctor x; refused "x: one argument too many"

# Limits.
within "ulimit -n 100" doctor; is_code 0; is limits/nofile note; out_has "100 open files"; out_has "-> ulimit -n 4096"
within "ulimit -f 2000" doctor; is_code 1; is limits/fsize bad; out_has "-> ulimit -f unlimited"; err_has "1 of $((lines + 1)) checks are bad"
within "ulimit -f 2000000" doctor; is_code 0; is limits/fsize note
within "cd /proc" doctor; is_code 1; is disk bad
within "export ONEDNN_MAX_CPU_ISA=SSE41" doctor; is_code 0; is processor/limit note; out_has "-> unset it"
if [ "$(nproc)" -gt 1 ] && command -v taskset >/dev/null; then
    within "taskset -pc \$(taskset -pc \$BASHPID | sed 's/.*: *//; s/[-,].*//') \$BASHPID >/dev/null" doctor; is_code 0; is processors note; out_has "1 of "
fi

# A plugin that is none is named with its reason, and everything else is looked at as before.
mkdir -p more/backend && echo "no library" >more/backend/broken.so
run doctor --plugin-dir more; is_code 1; is "plugin backend/broken" bad; out_has "broken.so"; out_has "-> build it again"; is disk ok; is "device cpu" ok
run doctor --plugin-dir more --json; is_code 1; out_has '"bad": 1}'; out_has '{"name": "plugin backend/broken", "state": "bad"'

# Releases of oneDNN with known faults, by a library that only says its version.
version() { # major minor patch
    printf 'static const struct { int v[3]; } v = {{%d, %d, %d}};\nconst void *dnnl_version(void);\nconst void *dnnl_version(void) { return &v; }\n' \
        "$@" >v.c
    ${CC:-cc} -shared -fPIC -Wl,-soname,libdnnl.so.99 -o libdnnl.so.99 v.c
    within "export LD_PRELOAD=$work/libdnnl.so.99 ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0" doctor; is_code 0
}
version 3 7 2; is libraries/onednn note; out_has "oneDNN 3.7.2 ($work/libdnnl.so.99): 3.7.2 computes wrong convolutions"
version 3 13 1; is libraries/onednn note; out_has "no Winograd"
version 3 1 7; is libraries/onednn ok
version 2 7 3; is libraries/onednn ok
finish 60
