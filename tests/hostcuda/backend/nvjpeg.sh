#!/usr/bin/env bash
# labels: big
# [data] decode = device in whole runs on virtual GPUs: the same losses as with decode = host, for any number of devices and workers, with
# other pictures in between, in 16 bits, and from a checkpoint; evaluation; what is refused and by whom.
. "$SODET_SOURCE/tests/hostcuda/backend/jpegs"

# ---- what is refused, before a folder is made ----
train refused run.devices=cuda_host data.decode=device --max-steps 1
is_code 2; err_has "decode = device"; err_has "set pixels = device, or decode = host"
train refused run.devices=cpu $gpu --max-steps 1
is_code 2; err_has "the backend cpu has no decoder for JPEGs"; err_has "write decode = host"
HC_FAIL=nvjpegCreateExV2:1:7 train refused run.devices=cuda_host $gpu --max-steps 1
is_code 2; err_has "the device is none that it supports (NVJPEG_STATUS_ARCH_MISMATCH)"; err_has "write [data] decode = host"
HC_FAIL=nvjpegGetProperty:1:8 train refused run.devices=cuda_host $gpu --max-steps 1
is_code 2; err_has "install nvJPEG 13, or write decode = host"
checks=$((checks + 1)); [ ! -e refused ] || bad "a run that was refused has left a folder"

# ---- the same steps ----
train host run.devices=cuda_host data.pixels=device --max-steps 8; is_code 0
checks=$((checks + 1)); [[ $err != *nvJPEG* ]] && [[ $err != *"decoded: "* ]] || bad "nvJPEG is spoken of in a run without it"
train one run.devices=cuda_host $gpu --max-steps 8; is_code 0
same host one
err_has "JPEGs are decoded by nvJPEG 13."
err_has "decoded: "; err_has " pictures by the devices, "; err_has " by the host, the first of them "
train hosts run.devices=cuda_host:0,1,2 data.pixels=device --max-steps 8; is_code 0
train three run.devices=cuda_host:0,1,2 $gpu data.workers=3 --max-steps 8; is_code 0
same hosts three
train bf16 run.devices=cuda_host $gpu run.precision=bf16 --max-steps 4; is_code 0
near host bf16 0.05 4
# Five batches are sent before anything is waited for: nothing may be used again too early.
train many run.devices=cuda_host data.pixels=device optimizer.accumulate=5 --max-steps 3; is_code 0
HC_DELAY_US=3000 train slow run.devices=cuda_host $gpu optimizer.accumulate=5 --max-steps 3; is_code 0
same many slow

# ---- resuming, with the decoder and without ----
train cut run.devices=cuda_host $gpu --max-steps 5; is_code 0
train cut run.devices=cuda_host $gpu --resume cut --max-steps 8; is_code 0
same host cut
train cut run.devices=cuda_host data.pixels=device --resume cut --max-steps 9; is_code 0
err_has "data.decode = host (was device)"

# ---- evaluation ----
val="data.val=seen dataset.seen.plugin=csv dataset.seen.file=pictures/pictures.csv"
run eval one/last.safetensors $val data.decode=host run.devices=cuda_host --json; is_code 0; want=$(map_of)
run eval one/last.safetensors $val run.devices=cuda_host:0,1 --json; is_code 0; same_map "$want"
run eval one/last.safetensors $val run.devices=cpu --json; is_code 2; err_has "the backend cpu has no decoder for JPEGs"
run detect one/last.safetensors pictures/noise00.jpg run.devices=cpu; is_code 0 # its pictures are the host's in any case
finish 39
