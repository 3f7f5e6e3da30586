#!/bin/bash
# `sodet eval` on files: twelve lines in the familiar form, --json, exit codes.
set -u
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
gt=$SODET_SOURCE/tests/eval/coco-random-gt.json dt=$SODET_SOURCE/tests/eval/coco-random-dt.json
fail=0
check() { # what, condition's status
    [ "$2" -eq 0 ] || { echo "FAILED: $1"; fail=1; }
}
"$SODET_BIN" eval --detections "$dt" --ground-truth "$gt" evaluator.coco.compat=pycocotools >"$dir/out" 2>"$dir/err"
check "exit code 0" $?
[ "$(wc -l <"$dir/out")" -eq 12 ]; check "twelve lines" $?
want=" Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.249"
[ "$(head -1 "$dir/out")" = "$want" ]; check "first line" $?
want=" Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ] = 0.565"
[ "$(tail -1 "$dir/out")" = "$want" ]; check "last line" $?
[ ! -s "$dir/err" ]; check "nothing on stderr" $?

"$SODET_BIN" eval --detections "$dt" --ground-truth "$gt" evaluator.coco.compat=pycocotools --json >"$dir/json"
check "exit code 0 with --json" $?
python=$(command -v python3)
if [ -n "$python" ]; then
    "$python" - "$dir/json" "$SODET_SOURCE/tests/eval/coco-random-expected.json" <<'P'
import json, sys
got, want = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["metrics"]
assert list(got)[:12] == "AP AP50 AP75 APs APm APl AR1 AR10 AR100 ARs ARm ARl".split(), list(got)
assert got.keys() == want.keys() and all(abs(got[k] - want[k]) <= 1e-12 for k in want)
P
    check "JSON equals pycocotools' numbers" $?
fi
"$SODET_BIN" eval --detections "$dt" --ground-truth "$gt" --evaluator coco,voc --json | grep -q '"coco/AP": .*"voc/mAP": '; check "two evaluators" $?
echo '[]' >"$dir/none.json"
"$SODET_BIN" eval --detections "$dir/none.json" --ground-truth "$gt" >"$dir/out"; check "O-28: no detections, exit 0" $?
grep -q "maxDets=100 \] = 0.000" "$dir/out"; check "O-28: AP 0" $?

refused() { # what, text, arguments
    local what=$1 text=$2; shift 2
    "$SODET_BIN" eval "$@" >"$dir/out" 2>"$dir/err"
    [ $? -eq 2 ]; check "$what: exit code 2" $?
    grep -q -- "$text" "$dir/err"; check "$what: says \"$text\" (said: $(cat "$dir/err"))" $?
    [ ! -s "$dir/out" ]; check "$what: nothing on stdout" $?
}
refused "missing file" "nowhere.json" --detections nowhere.json --ground-truth "$gt"
refused "missing flag" "--ground-truth is missing" --detections "$dt"
refused "no such evaluator" "evaluator" --detections "$dt" --ground-truth "$gt" --evaluator cocoo
refused "wrong option" "compat" --detections "$dt" --ground-truth "$gt" evaluator.coco.compat=yes
refused "swapped files" "coco-random" --detections "$gt" --ground-truth "$dt"
[ $fail -eq 0 ] && echo "command: all checks passed"
exit $fail
