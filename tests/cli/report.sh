#!/usr/bin/env bash
# sodet report: a page with the figures that eval prints, well-formed and complete in itself; the run's figures as a table; wrong requests.
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
small="backbone.width=0.1 run.threads=1 data.workers=1 train.batch=4 data.train_limit=8 data.val_limit=6 train.log_every=1"
run train "$conf" $small schedule.total=2 run.output=run run.report=yes run.tensorboard=yes
is_code 0
checks=$((checks + 1)); grep -q "voc/mAP" run/events.out.tfevents.sodet || bad "no events for TensorBoard" # tests/report/events.c reads them
page() { # file: well-formed, nothing fetched
    checks=$((checks + 1))
    [ -f "$1" ] || { bad "no $1"; return; }
    "$SODET_BUILD/tests/test_report_page" "$1" >.page 2>&1 || bad "$1: $(cat .page)"
    out=$(cat "$1")
}
number() { grep -o "\"$1\": [^,}]*" <<<"$2" | head -n 1 | sed 's/.*: //'; }
page run/report.html # of the training
rm run/report.html

run eval run --json; is_code 0
judged=$out
run report run --threshold 0.01 --pictures 3; is_code 0
checks=$((checks + 1)); [ "$out" = run/report.html ] || bad "says $out"
page run/report.html
out_has "<td>voc/mAP</td><td>$(printf %.4f "$(number mAP "$judged")")</td>"
for class in circle diamond triangle star ring cross; do
    ap=$(number "AP/$class" "$judged")
    [ "$ap" = null ] && ap=$(printf '\xe2\x80\x93') || ap=$(printf %.4f "$ap")
    out_has "<td>$class</td><td>$ap</td>"
done
out_has "<td>weights</td><td>run/$(cd run && ls best.safetensors 2>/dev/null || echo last.safetensors)</td>"; out_has "4 steps, 2 epochs"; out_has "6 pictures"; out_has "multiply-adds at 128x128"; out_has "TIDE"; out_has "cpu:0"
out_has "train: 8 pictures"; out_has "seed = 1"
checks=$((checks + 1)); [ "$(grep -c '<figure>' run/report.html)" = 3 ] || bad "$(grep -c '<figure>' run/report.html) pictures, 3 were wanted"

# Another place, weights alone, no pictures, no validation.
cp run/last.safetensors alone.safetensors
run report alone.safetensors --out there.html --pictures 0; is_code 0
page there.html
out_has "There is no metrics.jsonl"
run report alone.safetensors data.val= --out there.html; is_code 0
page there.html; out_has "nothing was evaluated"
run report "$conf" $small --weights run/last.safetensors --out there.html --quiet; is_code 0; out_empty

run report run --csv run.csv; is_code 0
checks=$((checks + 1))
[ "$(head -n 1 run.csv | cut -d, -f1-5)" = step,epoch,lr,loss,loss/cls ] && [ "$(cut -d, -f1 run.csv | tr '\n' ' ')" = "step 1 2 2 3 4 4 4 " ] || bad "$(cat run.csv)"

run report; refused "which run?"
run report nowhere; refused "nowhere: neither"
run report run run; refused "run: one argument too many"
run report run --threshold 2; refused "--threshold 2"
run report run --pictures x; refused "--pictures x"
run report run --out nowhere/x.html; refused "nowhere"
run report alone.safetensors --csv x.csv; refused "metrics.jsonl"
# The page belongs to the run: a new one in its place takes it away.
run train "$conf" $small schedule.total=1 run.output=run run.overwrite=yes; is_code 0
checks=$((checks + 1)); [ ! -e run/report.html ] && [ ! -e run/events.out.tfevents.sodet ] || bad "files of the run before are still there"
finish 50
