#!/usr/bin/env bash
# labels: big
# [backend.cuda] autotune: the plan that is measured to be the fastest is taken, and kept; what is kept is not believed blindly.
. "$SODET_SOURCE/tests/cli/lib"
export HC_DEVICES=2
tiny="input.size=64x64 dataset.shapes_train.size=64 dataset.shapes_train.count=4 data.val= backbone.width=0.1 train.batch=2 data.workers=1 run.threads=1"
tuned() { # output, arguments
    run train "$SODET_SOURCE/conf/tinyssd_shapes.ini" $tiny run.devices=cuda_host backend.cuda_host.autotune=yes --max-steps 1 "run.output=$1" "${@:2}"
}
rows() { tail -n +2 "$1" | grep -c "$2"; }
is_all() { # file, part of a key, engine
    checks=$((checks + 1))
    local all found
    all=$(rows "$1" "$2") found=$(rows "$1" "$2.*engine $3"$'\t')
    [ "$all" -ge 10 ] && [ "$found" -eq "$all" ] || bad "of $all rows of $1 with \"$2\" $found have engine $3"
}

# Forward, in float32, has engines 70 and 0; whichever is slower is not taken.
HC_CUDNN_SLOW=70:8 tuned a backend.cuda_host.times=deep/a.tsv; is_code 0; err_has "convolutions measured on device 0, kept in deep/a.tsv"
is_all deep/a.tsv "forward fp32" 0
HC_CUDNN_SLOW=0:8 tuned b backend.cuda_host.times=b.tsv; is_code 0
is_all b.tsv "forward fp32" 70
# And it is what runs.
for slow in 70 0; do
    HC_CUDNN_SLOW=$slow:8 run bench "$SODET_SOURCE/conf/tinyssd_shapes.ini" $tiny run.devices=cuda_host backend.cuda_host.autotune=yes "backend.cuda_host.times=bench$slow.tsv" --layers --json --seconds 0.1
    is_code 0; out_has "cudnn engine $((70 - slow))"
    checks=$((checks + 1)); [[ $out != *"cudnn engine $slow+"* ]] || bad "an engine that is slower runs"
done
# What is kept decides, in a second run and whatever would be measured then.
cp b.tsv kept.tsv
HC_CUDNN_SLOW=70:8 tuned c backend.cuda_host.times=b.tsv; is_code 0
checks=$((checks + 1)); [[ $err != *measured* ]] || bad "it was measured again"
checks=$((checks + 1)); cmp -s b.tsv kept.tsv || bad "the file changed"
checks=$((checks + 1)); cmp -s b/last.safetensors c/last.safetensors || bad "equal choices did not give equal bytes"
# Another precision, another library, another option: other lists, other rows.
tuned d backend.cuda_host.times=b.tsv run.precision=bf16; is_code 0; err_has "convolutions measured"
checks=$((checks + 1)); [ "$(rows b.tsv 'forward bf16')" -ge 10 ] && [ "$(rows b.tsv 'forward fp32')" -ge 10 ] || bad "one precision's rows replaced the other's"
HC_CUDNN_VERSION=92001 tuned e backend.cuda_host.times=b.tsv; is_code 0; err_has "convolutions measured"
HC_CUDNN_WITHOUT=70,67 tuned f backend.cuda_host.times=kept.tsv; is_code 0 # one plan is left: nothing to measure
# A row that names no plan of the list is measured again, the others are not; another file's first line is believed in nothing.
sed -i '0,/forward fp32/s/\t[01]\tengine [0-9]*\t/\t1\tengine 99\t/' kept.tsv
HC_CUDNN_SLOW=0:8 tuned g backend.cuda_host.times=kept.tsv; is_code 0; err_has "engine 99"; err_has "is no plan that cuDNN offers"; err_has "autotune: 1 convolutions measured"
is_all kept.tsv "forward fp32" 70
sed -i '1s/.*/sodet cuda engines 0/' kept.tsv
tuned h backend.cuda_host.times=kept.tsv; is_code 0; err_has "measuring again"; err_has "convolutions measured"
# Nowhere to keep it, nothing to measure it in.
tuned i backend.cuda_host.times=/proc/none/b.tsv; is_code 2; err_has "[backend.cuda_host] autotune"; err_has "[backend.cuda_host] times"
truncate -s 17M huge.tsv
tuned huge backend.cuda_host.times=huge.tsv; is_code 2; err_has "[backend.cuda_host] times: no file to keep measurements in, remove it or name another one: huge.tsv"
HC_FAIL=cudaMalloc:8 tuned j backend.cuda_host.times=j.tsv; is_code 0; err_has "no room on device 0 to measure a convolution"
HC_FAIL=cudnnBackendExecute:2 tuned k backend.cuda_host.times=k.tsv; is_code 2; err_has "CUDNN_STATUS_EXECUTION_FAILED"
finish 37
