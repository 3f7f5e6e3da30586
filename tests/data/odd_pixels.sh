#!/usr/bin/env bash
# [data] pixels = device and pictures that are none: what a damaged header claims is not made room for; a picture that cannot be read is
# named and can be left out, as with pixels of the host.
. "$SODET_SOURCE/tests/cli/lib"
rgb() { printf 'P6\n%d %d\n255\n' "$1" "$2"; head -c $(($1 * $2 * 3)) /dev/zero | tr '\0' "$3"; }
for i in 1 2 3 4; do rgb $((40 + i)) 50 $i >good$i.ppm; done
printf 'P6\n3000 2000\n255\nxyz' >claims.ppm
echo "no picture" >text.ppm
rows() { for name in "$@"; do echo "$name,1,2,30,40,thing"; done; }
rows good{1..4}.ppm >good.csv
rows good{1..4}.ppm claims.ppm >claims.csv
rows good{1..4}.ppm text.ppm >text.csv
train() { # csv, arguments
    run train "$SODET_SOURCE/conf/tinyssd_shapes.ini" input.size=64x64 backbone.width=0.1 data.train=odd dataset.odd.plugin=csv "dataset.odd.file=$1.csv" \
        data.classes=thing data.val= data.workers=1 run.threads=1 run.devices=cpu transform.train=resize data.pixels=device data.max_pixels=1000000 train.batch=2 \
        "run.output=$1" --max-steps 3 "${@:2}"
}
train good; is_code 0; err_has "each of 0.01 MiB at most"
train claims; refused "claims.ppm: claims 3000x2000 pixels, more than the limit of 1000000" "[data] bad_files = skip leaves it out"
train text; refused "text.ppm: " "[data] bad_files = skip leaves it out"
checks=$((checks + 1)); [ ! -e claims ] && [ ! -e text ] || bad "a run that was refused has left a folder"
train claims data.bad_files=skip; is_code 0; err_has "each of 0.01 MiB at most"
train text data.bad_files=skip; is_code 0; err_has "each of 0.01 MiB at most"
# Whoever raises the limit is told which picture it is.
train claims data.max_pixels=10000000 train.batch=400000 run.output=more; refused "400000 pictures of up to 17 MiB (claims" "set pixels = host"
finish 19
