#!/usr/bin/env bash
# sodet compare: the figures of eval and summary side by side, differences and intervals; refusals of what cannot be compared; --train.
. "$SODET_SOURCE/tests/cli/lib"
small="run.threads=1 data.workers=1 train.batch=4 data.train_limit=8 train.log_every=1 schedule.total=1 train.max_steps=1"
ini() { # name width rest: a configuration
    printf '[run]\nbase = %s/conf/tinyssd_shapes.ini\nname = %s\noutput = %s\n[backbone]\nwidth = %s\n[input]\nsize = 64x64\n[dataset.shapes_val]\nsize = 64\n%s\n' "$SODET_SOURCE" "$1" "$1" "$2" "${3:-}" >"$1.ini"
}
limit=$'[data]\nval_limit = 6'
ini a 0.1 "$limit"; ini b 0.2 "$limit"; ini c 0.1 "$limit"
run train a.ini $small; is_code 0
run compare --train b.ini a.ini $small; refused "a.ini: " "holds an earlier run"
checks=$((checks + 1)); [ ! -e b ] || bad "b was trained although a cannot be"
run compare --train b.ini c.ini $small --draws 20 --json; is_code 0
checks=$((checks + 1)); [ -f b/last.safetensors ] && [ -f c/last.safetensors ] || bad "b and c were not trained"
out_has '"run": "b.ini"'; out_has '"run": "c.ini"'

number() { grep -o "\"$1\": [^,}]*" <<<"$2" | sed 's/.*: //' | sed -n "${3:-1}p"; }
same() { checks=$((checks + 1)); [ "$1" = "$2" ] || bad "\"$1\" is not \"$2\""; }
run eval a --json; is_code 0; a=$out
run eval b --json; is_code 0; b=$out
run summary b.ini $small --no-plan --json; is_code 0; plan=$out
run compare a b --draws 50 --json --out table.html; is_code 0
same "$(number voc/mAP "$out" 1)" "$(number mAP "$a")"
same "$(number voc/mAP "$out" 2)" "$(number mAP "$b")"
same "$(number voc/AP/star "$out" 2)" "$(number AP/star "$b")"
same "$(number parameters "$out" 2)" "$(number parameters "$plan" "$(grep -c '"parameters"' <<<"$plan")")"
same "$(number macs "$out" 2)" "$(number macs "$plan" "$(grep -c '"macs"' <<<"$plan")")"
same "$(number images "$out")" 6
checks=$((checks + 1)); python3 -c 'import json, sys; json.load(sys.stdin)' <<<"$out" || bad "no JSON"
checks=$((checks + 1)); "$SODET_BUILD/tests/test_report_page" table.html >.page 2>&1 || bad "$(cat .page)"
kept=$(grep -o '"difference": .*' <<<"$out")
run compare a b --draws 50 --json run.threads=2; is_code 0
same "$(grep -o '"difference": .*' <<<"$out")" "$kept" # whatever the threads
run compare a b --draws 50; is_code 0
out_has "parameters"; out_has "img/s, training (log)"; out_has "img/s, evaluation (now)"; out_has "planned MiB, batch 4"
out_has "6 pictures, on cpu:0"; out_has "50 draws"; out_has "voc/mAP"
run compare a a/last.safetensors b --draws 0 eval.evaluators=coco data.val_limit=4; is_code 0
out_has "coco/APs"; out_has "4 pictures"; checks=$((checks + 1)); [[ $out != *draws* ]] || bad "draws were not wanted"
run compare a --draws 0; is_code 0; out_has "voc/mAP"

# What cannot be compared is refused before anything runs.
for name in d e f; do cp a.ini $name.ini; sed -i "s/name = a/name = $name/; s/output = a/output = $name/" $name.ini; done
sed -i 's/val_limit = 6/val_limit = 5/' d.ini
sed -i 's/^size = 64$/size = 64\nseed = 77/' e.ini
sed -i 's/^\[data\]$/[data]\nclasses = circle, star\nunknown_class = skip/' f.ini
for name in d e f; do run train $name.ini $small --quiet; is_code 0; done
run compare a d; refused "a and d cannot be compared" "6 and 5 pictures"
run compare a e; refused "a and e cannot be compared: picture 1 of [data] val is shapes-"
run compare a f; refused "a and f cannot be compared: class 2 is diamond in the first and star in the second"
run compare a d data.val_limit=3 --draws 0; is_code 0
run compare; refused "which runs?"
run compare a.ini; refused "a.ini: is a configuration; with --train"
run compare a nowhere; refused "nowhere: there is no such run"
run compare a data.val=; refused "names no data set to compare on"
run compare a b --draws x; refused "--draws x"
run compare a b --out nowhere/x.html; refused "nowhere"
cp c.ini g.ini
run compare --train c.ini g.ini $small run.overwrite=yes; refused "would both be trained in"
finish 60
