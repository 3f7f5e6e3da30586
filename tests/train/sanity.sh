#!/usr/bin/env bash
# The first run of a person: --max-steps, --overfit, and what is said where nothing can be learned.
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
small="backbone.width=0.1 input.size=64x64 dataset.shapes_train.size=64 dataset.shapes_train.count=40 dataset.shapes_val.size=64 run.threads=1 data.workers=1 train.batch=4 train.log_every=1 schedule.warmup=none schedule.warmup_iterations=0"
same() { checks=$((checks + 1)); [ "$1" = "$2" ] || bad "\"$1\" is not \"$2\""; }

# Four pictures, trained on and validated on, even where there is no [data] val; and without chance: the transforms of training do not matter.
run train "$conf" $small --overfit 4 --max-steps 6 schedule.total=9 run.output=a
is_code 0
err_has "--overfit sets data.overfit=4"; err_has "--max-steps sets train.max_steps=6"; err_has "train: 4 pictures"; err_has "val: 4 pictures"; out_has "after 6 steps"
run train "$conf" $small --overfit 4 --max-steps 6 schedule.total=9 run.output=b transform.train=hflip,resize data.val= --quiet
is_code 0
figures() { grep -o '"loss[^,]*,\|"voc/mAP": [^,}]*' "$1/metrics.jsonl"; }
same "$(figures a)" "$(figures b)"
checks=$((checks + 1)); [ "$(figures a | wc -l)" -ge 19 ] || bad "$(figures a)"
run eval a/last.safetensors --json; is_code 0; out_has '"images": 4,'
same "$(grep -o '"mAP": [^,]*' <<<"$out" | sed 's/.*: //')" "$(grep -o '"voc/mAP": [^,}]*' a/metrics.jsonl | tail -n 1 | sed 's/.*: //')"
run train "$conf" $small --overfit 0 --max-steps 1 data.val_limit=3 run.output=c; is_code 0; err_has "train: 40 pictures"; err_has "val: 3 pictures"

# Nothing to learn from.
run train "$conf" $small schedule.total=1 data.min_side=10000 data.val= run.output=d; is_code 0
err_has "advice: 10 steps without an object"; err_has "min_side = 10000"
checks=$((checks + 1)); grep -q "^advice: 10 steps" d/log.txt || bad "log.txt lacks the advice"
# Said once, and not to a run that goes on.
run train "$conf" $small schedule.total=2 optimizer.lr=0 data.val= run.output=e; is_code 0; err_has "advice: the loss has not fallen in the first epoch"
same "$(grep -c '^advice: the loss' e/log.txt)" 1
run train "$conf" $small schedule.total=2 data.min_side=10000 data.val= run.output=f --max-steps 5; is_code 0
run train "$conf" $small schedule.total=2 data.min_side=10000 data.val= run.output=f --resume f; is_code 0
same "$(grep -c '^advice:' f/log.txt)" 0
run train "$conf" $small schedule.total=9 optimizer.lr=1000 optimizer.weight_decay=10 optimizer.clip_norm=0 data.val= run.output=g; is_code 1
err_has "advice: go on from the last checkpoint with a lower rate (optimizer.lr=100), a warm-up (schedule.warmup=linear schedule.warmup_iterations=500), optimizer.clip_norm=10"
finish 26
