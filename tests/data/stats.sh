#!/usr/bin/env bash
# sodet data stats: figures of four boxes counted by hand, as text, JSON and a picture.
. "$SODET_SOURCE/tests/data/lib"

# Pictures of 64 x 64 in an input of 128 x 64: x doubles. Areas in the picture 200, 1800, 32, 64; in the input twice that.
printf '[data]\ntrain = shapes\n[dataset.shapes]\ncount = 3\nsize = 64\n' >"$dir/shapes.ini"
run data export shapes.ini --split train --output files
printf 'files/000001.png,0,0,20,10,a\nfiles/000001.png,4,0,64,30,b\nfiles/000002.png,0,0,4,8,a\nfiles/000003.png,,,,,\n' >"$dir/x.csv"
printf 'files/000003.png,0,0,8,8,b\nfiles/000001.png,90,0,98,8,a\n' >"$dir/y.csv"
printf '[input]\nsize = 128x64\n[data]\ntrain = x\nval = y\nclasses = a, b, c\n[dataset.x]\nplugin = csv\nfile = x.csv\nzero_based = yes\n[dataset.y]\nplugin = csv\nfile = y.csv\nzero_based = yes\n' >"$dir/x.ini"
run data stats x.ini --json
expect json 0 '{"shares": [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1], "outside": 1, "unread": 0, "sets": ['
expect json 0 '{"name": "train", "pictures": 3, "empty": 1, "boxes": 3, "difficult": 0, "crowd": 0,'
expect json 0 '"a": {"boxes": 2, "pictures": 2, "median_side": 8, "input": {"small": 2, "medium": 0, "large": 0}}'
expect json 0 '"b": {"boxes": 1, "pictures": 1, "median_side": 60, "input": {"small": 0, "medium": 1, "large": 0}}'
expect json 0 '"c": {"boxes": 0, "pictures": 0, "median_side": null,'
expect json 0 '"sizes": {"picture": {"small": 2, "medium": 1, "large": 0}, "input": {"small": 2, "medium": 1, "large": 0}}'
expect json 0 '"boxes_per_picture": {"quantiles": [0, 0, 0, 1, 2, 2, 2],'
expect json 0 '"side": {"quantiles": [8, 8, 8, 20, 60, 60, 60], "edges": [0, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512], "counts": [0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]}'
expect json 0 '"ratio": {"quantiles": [0.5, 0.5, 0.5, 2, 2, 2, 2],'
expect json 0 '{"name": "val", "pictures": 2, "empty": 1, "boxes": 1,'
run data stats x.ini --out x.png
expect text 0 "pictures                              3          2"
expect text 0 "  a                                   2          0"
expect text 0 "  train, in the picture               2          1          0"
expect text 0 "  train                    8.0       8.0       8.0      20.0      60.0      60.0      60.0"
expect text 0 "1 boxes that lie outside their picture are not in these figures"
[ "$(head -c 4 "$dir/x.png" | tail -c 3)" = PNG ] && [ "$(stat -c %s "$dir/x.png")" -gt 3000 ] || { echo "no picture"; ls -l "$dir"; failed=1; }
run data stats x.ini --split val --json
expect "one set" 0 '"sets": ['
grep -q '"train"' "$dir/out" && { echo "two sets"; failed=1; }
run data stats x.ini --out no/such/x.png
expect "no folder" 2 "no/such/x.png: nothing can be written"
# A picture whose size is in its file alone and cannot be read: the run's rule decides.
echo "no picture" >"$dir/files/bad.png"
echo 'files/bad.png,0,0,8,8,a' >>"$dir/y.csv"
run data stats x.ini --json
expect "an unreadable size" 1 "bad.png"
run data stats x.ini --json data.bad_files=skip
expect "an unreadable size that is passed over" 0 '"unread": 1'
[ $failed = 0 ] && echo "stats: all as expected"
exit $failed
