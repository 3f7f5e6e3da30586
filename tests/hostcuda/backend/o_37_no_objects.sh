#!/usr/bin/env bash
# labels: big
# O-37: one rank without objects: pictures whose objects are of classes that do not count, one picture a device.
. "$SODET_SOURCE/tests/hostcuda/backend/lib"
run train "$ini" $quarter "data.classes=circle" data.unknown_class=skip train.batch=2 run.devices=cuda_host:0,1 run.timeout=60 run.output=o37 --max-steps 12; is_code 0
finish 1
