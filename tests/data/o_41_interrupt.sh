#!/usr/bin/env bash
# O-41 for commands that look at data: an interrupt ends them at once whatever their threads do, the exit code says so, and nothing is left:
# no half a picture, no temporary file.
. "$SODET_SOURCE/tests/data/lib"

printf '[data]\ntrain = shapes\n[dataset.shapes]\ncount = 1000000\nsize = 256\n[transform]\ntrain = resize\n' >"$dir/x.ini"
for signal in INT TERM; do
    for verb in "check" "show --count 400 --out sheet.png" "convert --to coco --output made dataset.shapes.count=50000"; do
        # shellcheck disable=SC2086
        (cd "$dir" && exec "$SODET_BIN" data $verb x.ini run.threads=8 input.size=1024) >"$dir/out" 2>&1 &
        pid=$!
        sleep 1
        until [[ $verb != convert* || -d $dir/made ]] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done # from then on there is something to leave
        kill -s $signal $pid 2>/dev/null || { echo "data $verb: over before it was interrupted"; cat "$dir/out"; failed=1; }
        for ((tenths = 0; tenths < 100; tenths++)); do # nothing takes that long
            [ -n "$(jobs -rp)" ] || break
            sleep 0.1
        done
        kill -KILL $pid 2>/dev/null
        wait $pid
        code=$?
        [ $code -gt 128 ] && [ $code -ne 137 ] || { echo "data $verb, $signal: exit code $code"; cat "$dir/out"; failed=1; [ -z "${SODET_STOP_AT_FAILURE:-}" ] || exit 1; }
    done
done
left=$(ls -A "$dir" | grep -vxE 'x.ini|out')
[ -z "$left" ] || { echo "left behind: $left"; failed=1; }
[ $failed = 0 ] && echo "o_41: all as expected"
exit $failed
