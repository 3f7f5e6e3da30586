# What a run may be resumed with (core/train/resumed.h): values that its checkpoint depends on are refused by a sentence with key, old and
# new value and remedy; others count from here on, are told, and stand in config.ini. Also what is found out at the start of a resumed run
# in the place of at its end, closed standard streams, and files over the size that is allowed.
. "$SODET_SOURCE/tests/train/lib"
cat >"$work/tiny.ini" <<E2
[run]
base = $SODET_SOURCE/conf/tinyssd_shapes.ini
threads = 1
[input]
size = 64x64
[backbone]
width = 0.125
[dataset.shapes_train]
count = 8
size = 64
[dataset.shapes_val]
count = 2
size = 64
[train]
batch = 4
log_every = 1
[schedule]
total = 2
E2
train() { "$SODET_BIN" train "$work/tiny.ini" "$@" 2>"$work/err" >"$work/out"; }
resume() { train run.resume="$work/run" "$@"; }
says() { for word in "$@"; do grep -qF -- "$word" "$work/err" || fail "$word is not said: $(cat "$work/err")"; done; }
refused() { # section.key=value, then words of the message
    local before
    before=$(cat "$work"/run/*.ini "$work"/run/*.safetensors "$work/run/metrics.jsonl" | md5sum)
    resume "$1"
    [ $? = 2 ] || fail "$1 should be refused with 2: $(cat "$work/err")"
    says "${@:2}" "last.safetensors"
    [ "$before" = "$(cat "$work"/run/*.ini "$work"/run/*.safetensors "$work/run/metrics.jsonl" | md5sum)" ] || fail "$1: files were touched"
}

train run.output="$work/run" train.max_steps=1 || fail "the first run: $(cat "$work/err")"
cp -r "$work/run" "$work/kept"

refused input.size=96x96 "[input] size = 96x96" "has 64x64" "input.size=64x64" "run.init="
refused train.batch=8 "[train] batch = 8" "has 4" "train.batch=4"
refused run.seed=2 "[run] seed = 2" "has 1"
refused head.positive_iou=0.6 "[head] positive_iou" "0.5"
refused backbone.width=0.25 "[backbone] width" "0.125"
refused transform.train=resize "[transform] train = resize" "hflip"
refused optimizer.accumulate=2 "[optimizer] accumulate" "has 1"
refused optimizer.ema=0.9 "[optimizer] ema" "has 0"
refused data.bad_boxes=drop "[data] bad_boxes = drop" "has clip"
resume input.size=96x96 train.batch=8
[ $? = 2 ] || fail "two values should be refused"
says "so do 1 more"
# Another way of writing the same value is no difference.
resume input.size=64 train.max_steps=1 || fail "input.size=64 is 64x64: $(cat "$work/err")"

# Later: the end, the rate, what only evaluation reads.
resume schedule.total=3 optimizer.lr=0.004 head.score_threshold=0.02 train.max_steps=3 || fail "later values: $(cat "$work/err")"
for word in "schedule.total = 3 (was 2)" "optimizer.lr = 0.004" "head.score_threshold = 0.02"; do
    grep -qF "$word" "$work/run/log.txt" || fail "$word is not in log.txt: $(cat "$work/run/log.txt")"
done
grep -qE '^total *= *3 ' "$work/run/config.ini" && grep -qE '^lr *= *0.004 ' "$work/run/config.ini" || fail "config.ini does not say what counts: $(grep -E '^(total|lr) ' "$work/run/config.ini")"
[ "$(tail -n 1 "$work/run/metrics.jsonl" | grep -c '"step": 3')" = 1 ] || fail "the run did not go on to step 3"

# A line that is no figure of a run is found at the start, not at the end.
cp "$work/run/metrics.jsonl" "$work/figures"
for garbage in 'hello' '{"step": 2, "loss": }' '[1]'; do
    { head -n 1 "$work/figures"; echo "$garbage"; tail -n 1 "$work/figures"; } >"$work/run/metrics.jsonl"
    cp "$work/run/metrics.jsonl" "$work/garbage"
    resume schedule.total=3
    [ $? = 2 ] || fail "garbage in metrics.jsonl should be refused: $garbage: $(cat "$work/err")"
    says "metrics.jsonl: line 2" "remove the line"
    cmp -s "$work/run/metrics.jsonl" "$work/garbage" || fail "what was refused has been changed: $garbage"
done
rm "$work/run/metrics.jsonl"
resume schedule.total=3 || fail "without metrics.jsonl: $(cat "$work/err")"

# A closed stream must not get a file's number: of two, the folder of the run would get the first and metrics.jsonl the second.
"$SODET_BIN" train "$work/tiny.ini" run.output="$work/closed" schedule.total=1 0<&- 2>&- >"$work/out" || fail "train 0<&- 2>&-"
! grep -qv '^{' "$work/closed/metrics.jsonl" || fail "2>&-: messages in metrics.jsonl: $(grep -v '^{' "$work/closed/metrics.jsonl" | head -n 2)"
grep -q "^network: " "$work/closed/log.txt" && [ "$(grep -c '^network: ' "$work/closed/log.txt")" = 1 ] || fail "2>&-: log.txt has its messages not once"
"$SODET_BIN" eval "$work/closed" --quiet 0<&- 2>&- >"$work/out" || fail "the checkpoint of train 2>&- cannot be read"
"$SODET_BIN" list >&- 2>"$work/err"
[ $? = 1 ] || fail "sodet list >&- should end with 1: nobody got its output"

# A full disk, as `ulimit -f` has it (kilobytes): the file, what is needed and free, and what to do; the temporary file goes.
(ulimit -f 16 && "$SODET_BIN" train "$work/tiny.ini" run.output="$work/full" schedule.total=1 2>"$work/err" >"$work/out")
[ $? = 1 ] || fail "a full disk should end the run with 1: $(cat "$work/err")"
says "safetensors: " "no file may have more than" "ulimit -f"
! grep -q '\.tmp' "$work/err" && ! ls "$work"/full/*.tmp* 2>/dev/null || fail "a temporary file is named or left: $(cat "$work/err")"
[ $failed = 0 ] && echo "as it should be"
exit $failed
