#!/usr/bin/env bash
# labels: alone
# sodet bench: its modes report figures that make sense, steps fault in no pages, and wrong requests are refused.
. "$SODET_SOURCE/tests/cli/lib"
conf=$SODET_SOURCE/conf/tinyssd_shapes.ini
small="backbone.width=0.25 run.threads=1 data.workers=1 data.train_limit=40"
value() { grep -o "\"$1\": [^,}]*" <<<"$out" | head -n 1 | sed 's/.*: //'; }
holds() { # awk condition over $1..., text
    checks=$((checks + 1))
    awk "BEGIN { exit !($1) }" || bad "$1 does not hold"
}
figures() { # batch
    holds "$(value least) > 0 && $(value least) <= $(value p10) && $(value p10) <= $(value median) && $(value median) <= $(value p90)"
    holds "$(value steps) >= 5"
    holds "($(value images_per_second) * $(value median) / $1 - 1) ^ 2 < 1e-12"
}
run bench "$conf" $small --seconds 0.3 --json
is_code 0; err_empty
out_has '"mode": "inference", "detections": false, "batch": 1, "width": 128, "height": 128'
figures 1
holds "$(value peak_rss_bytes) > $(value planned_bytes) && $(value planned_bytes) > 1e6"
[ -n "$(grep -x 'SODET_SANITIZE:STRING=' "$SODET_BUILD/CMakeCache.txt")" ] && holds "$(value page_faults) < 10"

run bench "$conf" inference $small --seconds 0.1 --detections --layers
is_code 0
out_has "inference with detections, batch 1"; out_has "GFLOP/s"; out_has "of peak"; out_has "backbone/block0/conv1"; out_has $'\ndetect '; out_has $'\nall '

run bench "$conf" training $small --batch 2 --seconds 0.3 --layers --json
is_code 0
holds "$(value peak_flops) > 1e8 && $(value peak_flops) < 1e13"
out_has '"mode": "training"'; out_has '"path": "loss"'; out_has '"path": "head/cls/0"'
figures 2
[ -n "$(grep -x 'SODET_SANITIZE:STRING=' "$SODET_BUILD/CMakeCache.txt")" ] && holds "$(value page_faults) < 10"
# Accumulation: a step is several batches. Replicas: each its share.
run bench "$conf" training $small run.devices=cpu:x2 optimizer.accumulate=2 --batch 3 --seconds 0.1 --json
is_code 0
figures 6
out_has '"devices": 2'; out_has '"usage": {"devices": [{"name": "cpu:0 replica 0"'
shares=$(value efficiency)+$(value reduction_exposed)+$(value waiting)+$(value waiting_for_data)+$(value rest)
holds "$(value efficiency) > 0 && $(value reduction_exposed) > 0 && $(value reduction_hidden) == 0 && $(value awaited) >= 0 && ($shares - 1) ^ 2 < 1e-4"
run bench "$conf" $small run.devices=ref:x2 backbone.width=0.1 --batch 3 --seconds 0.05; is_code 0; out_has "batch 3"

# On data: the share of the time in which it waits for them.
run bench "$conf" training $small --data --batch 4 --seconds 0.2 --json
is_code 0
figures 4
holds "$(value data_wait) >= 0 && $(value data_wait) <= 1"
run bench "$conf" training $small --data --batch 4 --seconds 0.1; is_code 0; out_has "data      waited for during"

run bench "$conf" data $small --batch 8 --seconds 0.2 --json
is_code 0
out_has '"mode": "data"'
figures 8
holds "$(value cpu_seconds) > 0 && $(value cpu_seconds) < 10"

# Evaluators: on what is made up, the same every time, and on files.
run bench "$conf" evaluator run.threads=2 eval.evaluators=coco,voc eval.best=coco --pictures 50 --objects 300 --found 4000 --classes 7 --seconds 0.1 --json
is_code 0; err_empty
out_has '"mode": "evaluator", "pictures": 50, "objects": 300, "detections": 4000, "classes": 7, "threads": 2'
out_has '"stage": "read ground truth"'; out_has '"stage": "read detections"'; out_has '"stage": "coco: match"'; out_has '"stage": "voc: summary"'
holds "$(value steps) >= 5 && $(value least) > 0 && $(value least) <= $(value median)"
gt=$SODET_SOURCE/tests/eval/coco-random-gt.json dt=$SODET_SOURCE/tests/eval/coco-random-dt.json
run bench "$conf" evaluator eval.evaluators=coco eval.best=coco --ground-truth "$gt" --results "$dt" --seconds 0.05
is_code 0; out_has "evaluator, "; out_has "coco: accumulate"; out_has $'\nall '
run bench "$conf" evaluator --ground-truth "$gt"; refused "--results is missing"
run bench "$conf" evaluator --ground-truth "$dt" --results "$dt"; refused "coco-random-dt.json"
run bench "$conf" evaluator --pictures 0; refused "--pictures 0"
run bench "$conf" evaluator eval.evaluators=none eval.best=none; refused "no plugin evaluator/none.so"
run bench "$conf" data --found 5; refused "--found: goes with evaluator"
run bench "$conf" inference --data; refused "--data: goes with training"

run bench "$conf" trainin; refused "trainin: inference, training, data or evaluator is expected"
run bench "$conf" training data; refused "data: inference, training, data or evaluator"
run bench; refused "which configuration?"
run bench "$conf" --seconds 0; refused "--seconds 0"
run bench "$conf" --seconds ever; refused "--seconds ever"
run bench "$conf" --batch -1; refused "--batch -1"
run bench "$conf" data --layers; refused "--layers: goes with inference and training"
run bench "$conf" training --detections; refused "--detections: goes with inference"
run bench "$conf" $small run.devices=cpu:x2 --batch 1; refused "at least one picture for each of 2 devices"
run bench "$conf" $small data --batch 64; refused "the training set has 40 pictures"
run bench "$conf" run.devices=none; refused "no plugin backend/none.so"
finish 75
