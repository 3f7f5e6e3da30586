#!/usr/bin/env bash
# labels: big
# O-36: a batch smaller than the number of devices: three pictures and four devices, of which one has none.
. "$SODET_SOURCE/tests/hostcuda/backend/lib"
run train "$ini" $quarter dataset.shapes_train.count=3 run.devices=cuda_host:0,1,2,3 run.output=o36 --max-steps 3; is_code 0
run train "$ini" $quarter dataset.shapes_train.count=3 run.devices=cpu run.output=o36-cpu --max-steps 3; is_code 0
near o36-cpu o36 1e-3 3
finish 3
