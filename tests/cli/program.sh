#!/usr/bin/env bash
# What every command has in common: exit codes, streams, suggestions, short forms, --version, list, help.
. "$SODET_SOURCE/tests/cli/lib"

run; is_code 2; out_empty; err_has "usage: sodet <command>"
run --help; is_code 0; out_has "usage: sodet <command>"; err_empty
run --version; is_code 0; err_empty; out_has "sodet 0."; out_has "plugin ABI 0."; out_has "libjpeg"; out_has "expat"; out_has "plugins: "; out_has "oneDNN"
run chek; refused "no command chek; did you mean check?"
run frobnicate; refused "no command frobnicate"

# --version opens nothing and is quick: processor time, the best of ten, so that a busy machine does not fail it.
best=1000000 TIMEFORMAT='%3U %3S'
for _ in 1 2 3 4 5 6 7 8 9 10; do
    read -r user system < <({ time "$sodet" --version >/dev/null; } 2>&1)
    took=$((10#${user/./} * 1000 + 10#${system/./} * 1000))
    [ $took -lt $best ] && best=$took
done
checks=$((checks + 1))
limit=20000
grep -qaE '__(asan|tsan)_' "$sodet" && limit=500000
[ $best -lt $limit ] || { echo "FAILED: --version takes $best us"; failed=1; }

parts >a.ini
run check; refused "which configuration?"
run check a.ini b.ini; refused "b.ini: a.ini is the configuration already"
run check a.ini stray; refused "stray: one argument too many"
run check a.ini lr=3; refused "write section.key=value"
run check a.ini --lrr 3; refused "unknown flag --lrr; did you mean --lr?"
run check a.ini --frobnicate; refused "any other option is written section.key=value"
run check a.ini --lr; refused "--lr needs a value"
run check a.ini --quiet=3; refused "--quiet takes no value"
run check a.ini --json; refused "reports no figures"
run check a.ini --plugin-dir nowhere; refused "--plugin-dir nowhere: No such file"
run check nowhere.ini; refused "nowhere.ini: cannot open: No such file"
run check --help; is_code 0; out_has "usage: sodet check"; out_has "--lr-decay-epoch"

run check a.ini; is_code 0; err_empty; out_has "plugin = tinyssd"; out_has "; a.ini:2"; out_has "; default"; out_has "[optimizer]"
run check a.ini --quiet; is_code 0; out_empty
run check -v a.ini; is_code 0
run check a.ini optimizer.lr=0.5; is_code 0; out_has "lr = 0.5 "; out_has "; command line"
run check --plain a.ini; is_code 0; printf '%s\n' "$out" >plain.ini
run check --plain plain.ini; is_code 0
checks=$((checks + 1)); diff plain.ini <(printf '%s\n' "$out") >/dev/null || bad "the plain form of the plain form differs"

# Short forms print the key they set.
short() { # flag value expected...
    local flag=$1 value=$2 want
    shift 2
    run check a.ini "$flag" "$value"
    is_code 0
    for want in "$@"; do err_has "$flag sets $want"; done
    out_has "command line ($flag)"
}
short -j 3 data.workers=3
short --lr 0.5 optimizer.lr=0.5
short --lr-decay 0.3 schedule.factor=0.3
short --lr-decay-epoch 3,5 schedule.milestones=3,5 schedule.type=multistep schedule.unit=epochs
short --epochs 7 schedule.total=7 schedule.unit=epochs
short --batch-size 9 train.batch=9
short --data-shape 320x256 input.size=320x256
short --nms-thresh 0.6 head.nms_iou=0.6
short --resume x.ckpt run.resume=x.ckpt
short --seed 5 run.seed=5
run check a.ini --gpus 0,1; err_has "--gpus sets run.devices=cuda:0,1"
run check a.ini -j4; is_code 0; err_has "-j sets data.workers=4"
run check a.ini --lr=0.25; is_code 0; out_has "lr = 0.25 "
{ parts; printf '[data]\ntrain = one, two\nval = three\n[dataset.one]\nplugin = shapes\n[dataset.two]\nplugin = shapes\n[dataset.three]\nplugin = shapes\n'; } >d.ini
run check d.ini --train-split x; err_has "dataset.one"
run check d.ini --dataset shapes; is_code 0
for want in "--dataset sets dataset.one.plugin=shapes" "--dataset sets dataset.two.plugin=shapes" "--dataset sets dataset.three.plugin=shapes"; do err_has "$want"; done
run check d.ini --dataset voc --train-split trainval --val-split test; err_has ""
run check a.ini --dataset nosuch; refused "no plugin dataset/nosuch.so"

run list; is_code 0; err_empty; out_has "backbone"; out_has "  tinyssd"
run list heads; refused "heads: there is no such kind of plugins; did you mean head?"
run list head --json; is_code 0; out_has '{"plugins": ['; out_has '"kind": "head", "name": "ssd"'
run list --plugin-dir "$SODET_BUILD/tests/abi" head; is_code 0; out_has "  ssd"; out_has "  good"; out_has "refused: "

run help; is_code 0; err_empty; out_has "commands:"; out_has "topics:"; out_has "optimizer"
for topic in ini plugins exit ops; do run help $topic; is_code 0; err_empty; checks=$((checks + 1)); [ ${#out} -gt 100 ] || bad "says little"; done
run help optimizer; is_code 0; out_has "lr = 0.001"
run help head/ssd; is_code 0; out_has "head/ssd: "; out_has "nms_iou = "
run help head/sdd; refused "did you mean ssd?"
run help hed/ssd; refused "no kind hed"
run help lis; refused "did you mean list?"
run help check list; is_code 0; out_has "sodet check: "; out_has "sodet list: "

# A result that cannot be written is no success.
"$sodet" help >/dev/full 2>"$work/.err"
code=$? out="" err=$(cat "$work/.err") line="sodet help >/dev/full"
is_code 1; err_has "standard output"

finish 130
