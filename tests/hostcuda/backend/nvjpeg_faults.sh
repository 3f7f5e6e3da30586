#!/usr/bin/env bash
# labels: big
# [data] decode = device in runs that go wrong: a JPEG that is damaged behind its header or cut short, calls that fail in the middle; fewer
# pictures than devices; what doctor says.
. "$SODET_SOURCE/tests/hostcuda/backend/jpegs"

# ---- two pictures and four devices, a loader for each epoch ----
head -n 3 pictures/pictures.csv >pictures/few.csv
run train "$ini" $(set_of few pictures/few.csv) run.devices=cuda_host:0,1,2,3 $gpu data.shuffle=no run.output=few --max-steps 3; is_code 0
err_has "decoded: 6 pictures by the devices, 0 by the host"
run train "$ini" $(set_of few pictures/few.csv) run.devices=cuda_host:0,1,2,3 data.pixels=device data.shuffle=no run.output=few-host --max-steps 3; is_code 0
same few few-host

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
finish 27
