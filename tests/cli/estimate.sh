#!/usr/bin/env bash
# sodet bench --estimate: against the arithmetic of summary, and what it refuses.
. "$SODET_SOURCE/tests/cli/lib"
ini=$SODET_SOURCE/conf/ssd300_vgg16_voc.ini
value() { grep -o "\"$1\": [0-9.e+-]*" <<<"$out" | sed -n "${2:-1}p" | sed 's/.*: //'; }
holds() { checks=$((checks + 1)); awk "BEGIN { exit !($1) }" || bad "not true: $1"; }

run summary "$ini" --classes 20 --json; is_code 0
macs=$(grep -o "\"macs\": [0-9]*" <<<"$out" | sed "s/.*: //" | sort -n | tail -1) # of the whole
run bench "$ini" --classes 20 --estimate h200 --batch 8 --json; is_code 0
# Eight pictures at 67 TFLOP/s of float32: convolutions are bound by arithmetic there, so the time is little more than that alone.
least=$(awk "BEGIN { print 8 * 2 * $macs / 67e12 }")
holds "$(value seconds 1) > $least && $(value seconds 1) < 1.1 * $least"
holds "$(value seconds 2) < $(value seconds 1) / 4 && $(value seconds 3) < $(value seconds 2)"
holds "$(value seconds 3) < 0.55 * $(value seconds 2)" # twice the arithmetic, and half the bytes
for i in 1 2 3; do holds "$(value images_per_second $i) * $(value seconds $i) > 7.999 && $(value images_per_second $i) * $(value seconds $i) < 8.001"; done
holds "$(value convolutions 1) > 0.9 && $(value arithmetic 1) > 0.9"
narrow=$(value seconds 3)
run bench "$ini" training --classes 20 --estimate h200 --batch 8 --json; is_code 0
# Forward and twice that backward; batch 8 of float32 maps and its update are read and written besides.
holds "$(value seconds 1) > 2.9 * $least && $(value seconds 1) < 3.6 * $least && $(value seconds 3) > 2.9 * $narrow"
run bench "$ini" training --classes 20 --estimate v100 --batch 8; is_code 0
checks=$((checks + 1)); ! grep -q tf32 <<<"$out" || bad "a V100 has no TF32"
run bench "$ini" training --classes 20 --estimate a100 --batch 8 --layers; is_code 0; out_has "conv4_2"
run bench "$ini" --classes 20 --estimate titan; is_code 2; err_has "h200, h100, a100 or v100"
run bench "$ini" data --estimate h200; is_code 2; err_has "goes with inference and training"
finish 19
