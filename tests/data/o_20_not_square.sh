#!/usr/bin/env bash
# O-20: on inputs that are not square there are 2724 boxes where 256 x 256 has 5444 (TinySSD, 256 x 128) and 24552 of RetinaNet (512 x 256),
# and a square anchor is a square in pixels.
. "$SODET_SOURCE/tests/data/lib"

three_boxes
run data anchors x.ini --json input.size=256
expect "O-20" 0 '"width": 256, "height": 256, "anchors": 5444'
run data anchors x.ini --json input.size=256x128
expect "O-20" 0 '"width": 256, "height": 128, "anchors": 2724'
printf '[run]\nbase = x.ini\n[backbone]\nplugin = resnet\ndepth = 18\nwidth = 0.125\n[neck]\nplugin = fpn\n[head]\nplugin = retinanet\n[loss]\nplugin = focal\n' >"$dir/r.ini"
run data anchors r.ini --json input.size=512x256
expect "O-20" 0 '"width": 512, "height": 256, "anchors": 24552'
# The box [20, 20, 36, 36] of the input, a square of 16, comes from [10, 20, 18, 36] of the picture.
printf 'files/000001.png,10,20,18,36,a\n' >"$dir/x.csv"
run data anchors x.ini --json input.size=128x64
expect "O-20" 0 '"all": {"boxes": 1, "mean_iou": 1, "below": 0'
[ $failed = 0 ] && echo "o_20: all as expected"
exit $failed
