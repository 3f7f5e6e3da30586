#!/usr/bin/env bash
# labels: big
# [data] decode = device in whole runs on virtual GPUs, whose nvJPEG is libjpeg: the same losses as with decode = host, for any number of
# devices and workers, with other pictures in between, in 16 bits, and from a checkpoint; evaluation; what is refused and by whom; a JPEG that
# is damaged behind its header.
. "$SODET_SOURCE/tests/hostcuda/backend/lib"
export HC_ABORT=1
files=$SODET_BUILD/tests/test_data_pixels
mkdir pictures && "$files" --files pictures || bad "no pictures"
cp "$SODET_SOURCE"/tests/data/pictures/{cmyk-adobe,ycck-adobe,grey}.jpg pictures
for name in cmyk-adobe ycck-adobe grey; do echo "$name.jpg,1,1,7,7,cat" >>pictures/pictures.csv; done
set_of() { # label, csv
    echo "data.train=$1 dataset.$1.plugin=csv dataset.$1.file=$2 data.classes=cat,dog data.val= data.workers=1 run.threads=1 train.log_every=1 train.batch=8 input.size=64x64 backbone.width=0.25"
}
small=$(set_of mixed pictures/pictures.csv)
ssd="transform.train=photometric,expand,ssd_crop,hflip,resize transform.expand.plugin=expand transform.ssd_crop.plugin=ssd_crop"
gpu="data.pixels=device data.decode=device"
train() { # output, arguments
    run train "$ini" $small $ssd "run.output=$1" "${@:2}"
}
same() { # two runs
    checks=$((checks + 1))
    [ -n "$(losses "$1")" ] && [ "$(losses "$1")" = "$(losses "$2")" ] || bad "losses of $1 and $2 are not the same: $(paste <(losses "$1") <(losses "$2") | tr '\n' ';')"
}

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

# ---- two pictures and four devices, a loader for each epoch; evaluation ----
head -n 3 pictures/pictures.csv >pictures/few.csv
run train "$ini" $(set_of few pictures/few.csv) run.devices=cuda_host:0,1,2,3 $gpu data.shuffle=no run.output=few --max-steps 3; is_code 0
err_has "decoded: 6 pictures by the devices, 0 by the host"
run train "$ini" $(set_of few pictures/few.csv) run.devices=cuda_host:0,1,2,3 data.pixels=device data.shuffle=no run.output=few-host --max-steps 3; is_code 0
same few few-host
val="data.val=seen dataset.seen.plugin=csv dataset.seen.file=pictures/pictures.csv"
run eval one/last.safetensors $val data.decode=host run.devices=cuda_host --json; is_code 0; want=$(map_of)
run eval one/last.safetensors $val run.devices=cuda_host:0,1 --json; is_code 0; same_map "$want"
run eval one/last.safetensors $val run.devices=cpu --json; is_code 2; err_has "the backend cpu has no decoder for JPEGs"
run detect one/last.safetensors pictures/noise00.jpg run.devices=cpu; is_code 0 # its pictures are the host's in any case

# ---- damaged behind the header, or cut short. ----
damage() { # out: a JPEG with a hole in its data
    head -c 700 pictures/noise01.jpg >"$1"
    head -c 400 /dev/zero | tr '\0' '\377' >>"$1"
    tail -c +1101 pictures/noise01.jpg >>"$1"
}
mkdir hurt && cp pictures/noise0[0-9].* hurt && damage hurt/noise01.jpg
grep '^noise0' pictures/pictures.csv >hurt/pictures.csv
hurt=$(set_of hurt hurt/pictures.csv)
run train "$ini" $hurt run.devices=cuda_host data.pixels=device run.output=hurt-host --max-steps 6; is_code 1; err_has "noise01.jpg"
for policy in fail skip; do
    run train "$ini" $hurt run.devices=cuda_host:0,1 $gpu data.bad_files=$policy run.output=hurt-$policy --max-steps 6; is_code 1
    err_has "noise01.jpg: nvJPEG refuses it: "; err_has "sodet data check tells whether it is damaged, [data] decode = host reads"
done
head -c 900 pictures/noise01.jpg >hurt/noise01.jpg # libjpeg's word
run train "$ini" $hurt run.devices=cuda_host $gpu run.output=cut-stop --max-steps 6; is_code 1; err_has "noise01.jpg: a damaged or unsupported JPEG"
run train "$ini" $hurt run.devices=cuda_host $gpu data.bad_files=skip run.output=cut-skip --max-steps 6; is_code 0; err_has "noise01.jpg"

# ---- calls that fail in the middle ----
HC_FAIL=nvjpegDecodeBatched:3:6 train fails run.devices=cuda_host $gpu --max-steps 6; is_code 1
err_has "nvJPEG: the work on the device failed (NVJPEG_STATUS_EXECUTION_FAILED)"; err_has "write [data] decode = host"
HC_FAIL=nvjpegDecodeBatched:3:5 train fails run.devices=cuda_host:0,1 $gpu run.output=fails2 --max-steps 6; is_code 1
err_has "NVJPEG_STATUS_ALLOCATOR_FAILURE"; err_has "use a smaller batch (train.batch)"

# ---- what doctor says ----
run doctor; is_code 0; out_has "device cuda_host/jpeg"; out_has "decodes JPEGs"
HC_FAIL=nvjpegCreateExV2:1:4 run doctor; is_code 0; out_has "(NVJPEG_STATUS_JPEG_NOT_SUPPORTED)"
finish 66
