#!/usr/bin/env bash
# labels: big
# [run] precision in whole runs: bf16 learns what fp32 learns, a checkpoint keeps its precision, resuming gives the same bytes, mixed goes by
# its file of times; and what is refused. bf16 is emulated, so that every processor can run this.
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
small="backbone.width=0.25 input.size=96x96 dataset.shapes_train.size=96 dataset.shapes_train.count=64 dataset.shapes_val.size=96 dataset.shapes_val.count=8 run.threads=1 data.workers=1 train.batch=8 train.log_every=1 data.val= schedule.total=3"
narrow="run.precision=bf16 backend.cpu.bf16=emulate"
losses() { grep -o '"loss": [^,}]*' "$1/metrics.jsonl" | sed 's/.*: //'; }
near() { # two runs, allowed share of the loss: step by step
    checks=$((checks + 1))
    paste <(losses "$1") <(losses "$2") | awk -v most="$3" '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (!(d <= most)) bad = 1; n++ } END { exit bad || n < 20 }' ||
        bad "losses of $1 and $2 differ by more than $3: $(paste <(losses "$1") <(losses "$2") | tr '\n' ';')"
}

run train "$conf" $small run.output=fp32; is_code 0
run train "$conf" $small $narrow run.output=bf16; is_code 0
# The first losses differ by roundings of maps (2^-9 each), the later ones by what has come of them.
near fp32 bf16 0.05
checks=$((checks + 1)); [ "$(losses fp32)" != "$(losses bf16)" ] || bad "bf16 computed what fp32 computes"
checks=$((checks + 1)); grep -q '^precision = bf16' bf16/config.ini || bad "config.ini does not say bf16"

# Cut and resumed: the same bytes.
run train "$conf" $small $narrow run.output=cut --max-steps 9; is_code 0
run train "$conf" $small $narrow run.output=cut --resume cut --max-steps 24; is_code 0
run train "$conf" $small $narrow run.output=whole --max-steps 24; is_code 0
checks=$((checks + 1)); cmp -s <(tail -c 100000 cut/last.safetensors) <(tail -c 100000 whole/last.safetensors) || bad "a resumed run in bf16 ends elsewhere"

# Measured times are kept in the file that is named; a second run measures nothing.
run train "$conf" $small run.precision=mixed backend.cpu.bf16=emulate backend.cpu.times=times.tsv run.output=mixed; is_code 0
err_has "times measured, kept in times.tsv"
near fp32 mixed 0.05
cp times.tsv before.tsv
run eval mixed/last.safetensors data.val=shapes_val; is_code 0
run train "$conf" $small run.precision=mixed backend.cpu.bf16=emulate backend.cpu.times=times.tsv run.output=mixed2; is_code 0
checks=$((checks + 1)); ! grep -q "times measured" <<<"$err" || bad "measured again"
checks=$((checks + 1)); [ "$(losses mixed)" = "$(losses mixed2)" ] || bad "the same times gave other losses"

# What cannot be.
run train "$conf" $small run.precision=fp16 run.output=x; is_code 2; err_has "precision = fp16"; err_has "fp32, bf16 or mixed"
run train "$conf" $small run.precision=bf16 run.devices=ref run.output=x; is_code 2; err_has "write precision = fp32"
run train "$conf" $small run.precision=half run.output=x; is_code 2; err_has "fp32"
run eval bf16/last.safetensors data.val=shapes_val run.devices=ref; is_code 2; err_has "write precision = fp32"
run eval bf16/last.safetensors data.val=shapes_val run.devices=ref run.precision=fp32; is_code 0
finish 26
