#!/usr/bin/env bash
# The example program compiles as strict C11 and as C++17 against the public headers, and prints what `sodet detect` prints.
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
small="backbone.width=0.1 run.threads=1 data.workers=1"
"$sodet" train "$conf" $small train.max_steps=2 train.batch=4 data.train_limit=8 data.val_limit=2 run.output=run >log 2>&1 ||
    { cat log; exit 1; }
run data export "$conf" --output pictures --count 3
is_code 0

cache() { sed -n "s/^$1:[A-Z]*=//p" "$SODET_BUILD/CMakeCache.txt"; }
case $(cache SODET_SANITIZE) in
address) sanitize="-fsanitize=address,undefined" ;;
thread) sanitize="-fsanitize=thread" ;;
*) sanitize="" ;;
esac
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
source=$SODET_SOURCE/tests/api/example/embed.c
build() { # name compiler flags...
    local name=$1
    shift
    line="building $name" out="" err=$("$@" $warnings $sanitize -I"$SODET_SOURCE/include" -o "$name" "$source" -L"$SODET_BUILD/lib" -lsodet \
        -Wl,-rpath,"$SODET_BUILD/lib" 2>&1)
    code=$?
    is_code 0
}
run detect run/last.safetensors pictures/*.png --threshold 0 run.threads=1
is_code 0
want=$out
out_has "pictures/000003.png"
same() { # program
    out=$(./"$1" run/last.safetensors pictures/*.png 2>err) code=$? err=$(cat err) line="./$1"
    is_code 0
    checks=$((checks + 1))
    [ "$out" = "$want" ] || bad "prints something else than sodet detect"
}
build embed $(cache CMAKE_C_COMPILER) -std=c11
same embed
out=$(./embed run/last.safetensors "$source" pictures/000001.png 2>err) code=$? err=$(cat err) line="./embed with a broken picture"
is_code 1
out_has "pictures/000001.png"
err_has "embed.c: no picture that is known here"
out=$(./embed "$source" x.png 2>err) code=$? err=$(cat err) line="./embed without a checkpoint"
is_code 2
err_has "embed.c"
if command -v "${CXX:-c++}" >/dev/null; then
    build embed_cpp "${CXX:-c++}" -std=c++17 -x c++
    same embed_cpp
fi
finish 10
