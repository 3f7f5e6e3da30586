#!/usr/bin/env bash
# The example in Python, by ctypes alone, prints what `sodet detect` prints: for files, their contents, pixels with gaps, and threads.
. "$SODET_SOURCE/tests/cli/lib"
if ! command -v python3 >/dev/null; then
    skip "no python3" 21
    finish 21
    exit
fi
python=$(python3 -c 'import sys; print(sys.executable)') # behind any wrapper, for the library that is put in front
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
"$sodet" train "$conf" backbone.width=0.1 run.threads=1 data.workers=1 train.max_steps=2 train.batch=4 data.train_limit=8 \
    data.val_limit=2 run.output=run >log 2>&1 || { cat log; exit 1; }
run data export "$conf" --output pictures --count 3
is_code 0
for i in 1 2 3; do
    { printf 'P6\n61 4%d\n255\n' $i; seq $i 99999999 | head -c $((61 * (40 + i) * 3)); } >pictures/$i.ppm
done
case $(sed -n 's/^SODET_SANITIZE:[A-Z]*=//p' "$SODET_BUILD/CMakeCache.txt") in # a sanitizer comes before everything else in a process
address) preload=$(${CC:-cc} -print-file-name=libasan.so) ;;
thread) preload=$(${CC:-cc} -print-file-name=libtsan.so) ;;
*) preload="" ;;
esac
embed() {
    line="embed.py $*"
    LD_PRELOAD=$preload ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" "$python" -I "$SODET_SOURCE/tests/api/example/embed.py" \
        "$SODET_BUILD/lib/libsodet.so" "$@" >"$work/.out" 2>"$work/.err"
    code=$? out=$(cat "$work/.out") err=$(cat "$work/.err")
}
same() { checks=$((checks + 1)); [ "$out" = "$1" ] || bad "prints something else than sodet detect"; }
run detect run/last.safetensors pictures/*.p[np][gm] --threshold 0 run.threads=1
is_code 0
all=$out
ppm=$(grep '\.ppm' <<<"$out")
embed run/last.safetensors pictures/*.p[np][gm]; is_code 0; same "$all"; err_empty
embed run pictures/*.p[np][gm] --bytes; is_code 0; same "$all"
embed run/last.safetensors pictures/*.ppm --rgb; is_code 0; same "$ppm"
embed run/last.safetensors pictures/*.p[np][gm] --threads 5; is_code 0; same "$all"
embed run/last.safetensors pictures/*.p[np][gm] --bytes --threads 3; is_code 0; same "$all"
echo "no picture" >broken.jpg
embed run/last.safetensors broken.jpg pictures/000001.png; is_code 1
out_has $'pictures/000001.png\t'; err_has "broken.jpg: no picture that is known here"
embed run/last.safetensors broken.jpg --bytes; is_code 1; out_empty; err_has "broken.jpg: no picture that is known here"
embed none.safetensors x.png; is_code 2; err_has "none.safetensors"
finish 21
