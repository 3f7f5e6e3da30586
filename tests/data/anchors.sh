#!/usr/bin/env bash
# sodet data anchors: figures of three boxes worked out by hand, suggestions that hold what they say, whatever the number of threads.
. "$SODET_SOURCE/tests/data/lib"

# The finest of TinySSD's maps has a cell every 8 pixels, centres at 4, 12, 20, 28, and squares of 16. a is one of these: IoU 1. b lies in the
# middle of it, 8 x 8: 64 / 256. c is 16 x 14 in it: 224 / 256. Whatever else there is overlaps less.
three_boxes
run data anchors x.ini --json
expect "three boxes" 0 '"all": {"boxes": 3, "mean_iou": 0.70833333333333337, "below": 1, "without": 0,'
expect "three boxes" 0 '"histogram": [0, 0, 1, 0, 0, 0, 0, 0, 1, 1]}'
expect "three boxes" 0 '"b": {"boxes": 1, "mean_iou": 0.25, "below": 1, "without": 0, "anchors": 1, "histogram": [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]}'
expect "three boxes" 0 '"anchors": 344, "threshold": 0.5'
run data anchors x.ini --json head.claim=none
expect "nothing is claimed" 0 '"b": {"boxes": 1, "mean_iou": 0.25, "below": 1, "without": 1, "anchors": 0,'
run data anchors x.ini --json head.positive_iou=0.9
expect "another threshold" 0 '"all": {"boxes": 3, "mean_iou": 0.70833333333333337, "below": 2,'
run data anchors x.ini --clusters 2
expect "two clusters" 0 "train: 3 boxes of 3 pictures; input 64x64, head ssd, 344 anchors on 5 levels"
expect "two clusters" 0 "  b                             1    0.250    100.0 %      0.0 %      1.0"
expect "two clusters" 0 "       8.0 x 8.0        33.3 % of the boxes, IoU 1.000"
expect "two clusters" 0 "      16.0 x 16.0       66.7 % of the boxes, IoU 0.938"

# Suggestions: for both kinds of heads better than bad ones, the same for any number of threads, and they do what is said of them.
printf '[run]\nbase = x.ini\n[input]\nsize = 128\n[data]\ntrain = shapes\n[dataset.shapes]\nplugin = shapes\ncount = 150\n' >"$dir/bad.ini"
run data anchors bad.ini --json run.threads=1
cp "$dir/out" "$dir/one"
expect "suggestions for ssd" 0 '"suggested": {"better": true, "head": {"sizes": '
run data anchors bad.ini --json run.threads=3
cmp "$dir/one" "$dir/out" || { echo "threads make a difference"; failed=1; }
value() { sed -n "s/.*\"head\": {.*\"$1\": \"\([^\"]*\)\".*/\1/p" "$dir/one"; }
then=$(sed -n 's/.*"suggested".*"all": {\("boxes": [0-9]*, "mean_iou": [0-9.]*, "below": [0-9]*\).*/\1/p' "$dir/one")
run data anchors bad.ini --json "head.sizes=$(value sizes)" "head.second_sizes=$(value second_sizes)" "head.ratios=$(value ratios)"
expect "what is said of them" 0 "\"all\": {$then"
printf '[run]\nbase = bad.ini\n[neck]\nplugin = fpn\n[backbone]\nplugin = resnet\ndepth = 18\nwidth = 0.125\n[head]\nplugin = retinanet\nbase = 12\n[loss]\nplugin = focal\n' >"$dir/r.ini"
run data anchors r.ini --json
expect "suggestions for retinanet" 0 '"suggested": {"better": true, "head": {"sizes": '

run data anchors x.ini --clusters 0
expect "no clusters" 2 "--clusters 0: a whole number of 1 or more"
printf '[data]\ntrain = shapes\n' >"$dir/none.ini"
run data anchors none.ini
[ "$code" != 0 ] && grep -q "backbone" "$dir/out" || { echo "no network"; cat "$dir/out"; failed=1; }
run data draw shapes.ini --output y --json
expect "draw --json" 2 "leave out --json"
[ $failed = 0 ] && echo "anchors: all as expected"
exit $failed
