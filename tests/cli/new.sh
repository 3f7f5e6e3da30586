#!/usr/bin/env bash
# A plugin of every kind that `sodet new` knows: generated, built outside this tree against an installed sodet, loaded, checked, trained;
# and refused by a sodet with another ABI major.
. "$SODET_SOURCE/tests/cli/lib"
unset SODET_PLUGIN_PATH

run new; refused "usage: sodet new <kind> <name>"
run new hed mine; refused "did you mean head?"
run new head Mine; refused "small letters"
run new head 3d; refused "begins with a letter"
run new head int; refused "choose another name"
run new head a/b; refused "small letters"
SODET_PLUGIN_PATH=$SODET_BUILD/lib/sodet run new dataset voc; refused "dataset/voc: there is such a plugin, " "lib/sodet/dataset/voc.so, which yours would hide; choose another name"
mkdir mine
run new head mine; refused "is there already"
rmdir mine

DESTDIR=$work/root cmake --install "$SODET_BUILD" >"$work/install.log" 2>&1 || { cat "$work/install.log"; exit 1; }
prefix=$work/root$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$SODET_BUILD/CMakeCache.txt")
sodet=$prefix/bin/sodet
flags=$(sed -n 's/^SODET_SANITIZE:STRING=//p' "$SODET_BUILD/CMakeCache.txt")
case $flags in
address) flags="-DCMAKE_C_FLAGS=-fsanitize=address,undefined -DCMAKE_MODULE_LINKER_FLAGS=-Wl,-z,undefs" ;;
thread) flags="-DCMAKE_C_FLAGS=-fsanitize=thread -DCMAKE_MODULE_LINKER_FLAGS=-Wl,-z,undefs" ;;
esac
compiler=$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$SODET_BUILD/CMakeCache.txt")
for kind in dataset head loss backbone neck transform evaluator; do
    name=my_$kind
    run new $kind $name
    is_code 0
    out_has "$name/: the plugin $kind/$name"
    line="building $kind" out="" err=""
    cmake -S $name -B $name/build -G Ninja -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" $flags >log 2>&1 &&
        cmake --build $name/build >>log 2>&1
    code=$? out=$(tail -c 1500 log)
    is_code 0
    ctest --test-dir $name/build --output-on-failure >log 2>&1
    code=$? out=$(tail -c 2500 log) line="ctest of $kind"
    is_code 0
    out_has "100% tests passed, 0 tests failed out of 4"
done

# The example of a plugin with an operator of its own; where there is nvcc, with its kernels for GPUs, by CMake and by the line of sodet/cuda.h.
example=$prefix/share/doc/sodet/swish
nvcc=$(sed -n 's/^SODET_NVCC:[A-Z]*=//p' "$SODET_BUILD/CMakeCache.txt")
[ -x "$nvcc" ] && [ -z "$flags" ] || nvcc= # with a sanitizer's flags nothing more would be shown
line="building swish" out="" err=""
cmake -S "$example" -B swish -G Ninja -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix" $flags \
    -DCMAKE_CUDA_COMPILER="${nvcc:-NOTFOUND}" -DCMAKE_CUDA_ARCHITECTURES=90 -DCMAKE_CUDA_FLAGS=-Werror=all-warnings >log 2>&1 && cmake --build swish >>log 2>&1
code=$? out=$(tail -c 1500 log)
is_code 0
run train my_neck/test.ini --plugin-dir swish neck.plugin=swish run.output=run
is_code 0
if [ -n "$nvcc" ]; then
    line="nvcc swish.cu" err=""
    cflags=$(PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sodet.pc)") pkg-config --define-prefix --cflags sodet)
    command=$(sed -n 's/^ \*  *nvcc -shared/nvcc -shared/p' "$SODET_SOURCE/include/sodet/cuda.h")
    command=${command/nvcc/$nvcc -Werror all-warnings} command=${command/-arch=native/-arch=sm_90} command=${command/'$(pkg-config --cflags sodet)'/$cflags}
    (mkdir -p line/neck && cd line && cp "$example/swish.cu" . && eval "$command") >log 2>&1
    code=$? out=$(tail -c 1500 log)
    is_code 0
    for file in swish/neck/swish.cuda.so line/neck/swish.cuda.so; do
        line="nm -D $file" out=$(nm -D --defined-only "$file" 2>&1)
        out_has " sodet_cuda_desc"
        checks=$((checks + 1)); [ "$(wc -l <<<"$out")" -eq 1 ] || bad "more than its table is seen from outside: $out"
    done
elif [ -n "$flags" ]; then
    left_out=$((${left_out:-0} + 5))
else
    skip "no nvcc for swish.cu" 5
fi

# The same source against headers of another major: this sodet refuses it, and says what to do.
sed -i 's/^#define SODET_ABI_MAJOR .*/#define SODET_ABI_MAJOR 1u/' "$prefix/include/sodet/plugin.h"
cmake --build my_head/build --clean-first >/dev/null 2>&1
run check my_head/test.ini --plugin-dir my_head/build
refused "[head] plugin = my_head" "built for plugin ABI 1.0" "build the plugin again"
finish 70
