#!/usr/bin/env bash
# The layers of core/ hold, and the check that says so sees a breach of each rule.
set -uo pipefail
root=$SODET_SOURCE
"$root/scripts/check_layers" "$root" || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{core/base,core/graph,core/cli,core/lost,plugins/head/a,plugins/head/b,plugins/backend/c,kernels/k,include/sodet}
echo '#include "core/graph/graph.h"' >"$work/core/base/up.c"
printf '#include "plugins/head/a/a.h"\nint f(void) { abort (); }\n' >"$work/core/graph/g.c"
printf '/* exit(1) in a comment, and */ const char *s = "exit(1)"; // abort()\n#include "core/base/base.h"\n' >"$work/core/graph/fine.c"
echo 'void f(void) { exit(3); }' >"$work/core/cli/cmd_x.c"
echo 'int main(void) { exit(0); }' >"$work/core/cli/main.c"
echo 'int x;' >"$work/core/lost/l.c"
printf '#include "core/base/base.h"\n#include "own.h"\nvoid f(void) { printf("x"); }\n' >"$work/plugins/head/a/a.c"
echo '#include "plugins/head/a/a.h"' >"$work/plugins/head/b/b.c"
echo '#include "core/base/base.h"' >"$work/plugins/backend/c/c.c"
echo '#include "core/train/train.h"' >"$work/kernels/k/k.c"
printf '#include "core/base/base.h"\n#include <cuda_runtime.h>\n' >"$work/include/sodet/x.h"
out=$("$root/scripts/check_layers" "$work")
[ $? -eq 1 ] || { echo "a tree full of breaches passes"; exit 1; }
failed=0
while IFS= read -r want; do
    grep -qF "$want" <<<"$out" || { echo "not seen: $want"; failed=1; }
done <<'END'
core/base/up.c: base includes core/graph/graph.h, but graph comes after it
core/graph/g.c: the core includes a plugin's plugins/head/a/a.h
core/graph/g.c:2:int f(void) { abort (); }: only core/cli/main.c may end the process
core/cli/cmd_x.c:1:
core/lost/: no layer of this name
plugins/head/a/a.c: a plugin includes core/base/base.h
plugins/head/a/a.c: includes own.h, which is not in its folder
a library prints
plugins/head/b/b.c: includes another plugin's plugins/head/a/a.h
kernels/k/k.c: includes core/train/train.h
include/sodet/x.h: a public header includes core/base/base.h
include/sodet/x.h: a type of CUDA
END
for quiet in fine.c core/cli/main.c plugins/backend/c/c.c; do
    grep -qF "$quiet:" <<<"$out" && { echo "$quiet is blamed"; failed=1; }
done
[ $failed -eq 0 ] && echo "every breach is seen"
exit $failed
