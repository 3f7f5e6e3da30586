#!/usr/bin/env bash
# scripts/download_*: what they say, and their common part on small files from file://: whole, interrupted, damaged, changed, unpacked once.
. "$SODET_SOURCE/tests/cli/lib"
. "$SODET_SOURCE/scripts/fetch.sh"
mkdir -p source/VOCdevkit && echo picture >source/VOCdevkit/a.jpg
mkdir mirror && tar -cf mirror/a.tar -C source VOCdevkit && head -c 100000 /dev/zero >mirror/b.bin
row() { echo "file://$PWD/mirror/$1 $(stat -c %s "mirror/$1") $(md5sum <"mirror/$1" | cut -d' ' -f1) ${2:-.}"; }
fetch() { out=$( (fetch_main Small "ours" --to to "$@" <<<"$table") 2>&1); code=$?; }

there() { checks=$((checks + 1)); [ -f "$1" ] || bad "$1 is missing"; }
absent() { checks=$((checks + 1)); [ ! -e "$1" ] || bad "$1 is there"; }
table="$(row a.tar)"$'\n'"$(row b.bin weights)"

line="list"; fetch --list; is_code 0; out_has "licence: ours"; out_has "in all $(fetch_size $(($(stat -c %s mirror/a.tar) + 100000)))"; absent to
line="interrupted"; mkdir to; head -c 4000 mirror/a.tar >to/a.tar.part; fetch; is_code 0; out_has "going on with to/a.tar.part at 4000 bytes"
there to/VOCdevkit/a.jpg; there to/weights/b.bin; absent to/a.tar.part
checks=$((checks + 1)); cmp -s mirror/a.tar to/a.tar || bad "the archive is not the source's"
line="again"; fetch; is_code 0; out_has "there already: to/a.tar"; out_has "nothing to fetch"
line="damaged"; rm -r to; mkdir to; head -c 50000 /dev/urandom >to/b.bin.part; fetch --only b.bin; is_code 2
out_has "the checksum is"; out_has "the file was removed"; absent to/b.bin; absent to/b.bin.part; absent to/weights
line="changed"; cp -r mirror other; echo more >>other/b.bin; fetch --only b.bin --from "file://$PWD/other"; is_code 2; out_has "100005 bytes, 100000 were expected"
absent to/b.bin
line="not there"; rm -rf to; fetch --from file:///nowhere; is_code 2; out_has "file:///nowhere/a.tar: not fetched; run the same command again"
line="arguments"; fetch --fro x; is_code 2; out_has "--fro: no such argument"; fetch --to; is_code 2; out_has "--to: a value is expected"
line="no room"; table="file:///x/y.tar 999999999999999 00 ."; fetch; is_code 2; out_has "are needed; name another folder by --to"

# A size that is known about, and a checksum by its first digits: PyTorch's files. Nothing is unpacked.
about() { echo "file://$PWD/mirror/$1 ~90000 sha256:$(sha256sum <"mirror/$1" | cut -c1-8) ."; }
table=$(about b.bin)
line="weights"; rm -rf to; fetch; is_code 0; there to/b.bin; checks=$((checks + 1)); cmp -s mirror/b.bin to/b.bin || bad "not the source's"
out_has "in all 90000 bytes, 90000 bytes on the disk"
line="weights again"; fetch; is_code 0; out_has "there already: to/b.bin"
line="weights interrupted"; rm -rf to; mkdir to; head -c 40000 mirror/b.bin >to/b.bin.part; fetch; is_code 0; out_has "going on with to/b.bin.part at 40000 bytes"; there to/b.bin
line="weights, all there but for the name"; rm -rf to; mkdir to; cp mirror/b.bin to/b.bin.part; fetch; is_code 0; there to/b.bin
line="other weights"; rm -rf to; mkdir to; head -c 50000 /dev/urandom >to/b.bin.part; fetch; is_code 2; out_has "the checksum is sha256:"; absent to/b.bin; absent to/b.bin.part
weights=ssd300_vgg16_coco-b556d3b4.pth
line="download_weights"; mkdir pytorch; echo weights >pytorch/$weights
out=$("$SODET_SOURCE/scripts/download_weights" --only ssd300 --from "file://$PWD/pytorch" --to "$PWD/weights" 2>&1); code=$?; is_code 2
out_has "BSD 3-clause"; out_has "143 MB"; out_has "sha256:b556d3b4 was expected"; absent weights/$weights
touch weights/$weights{,.unpacked}; out=$("$SODET_SOURCE/scripts/download_weights" --only ssd300 --to "$PWD/weights" 2>&1); code=$?; is_code 0
out_has "sodet import conf/ssd300_vgg16_torchvision.ini $PWD/weights/$weights --map conf/maps/torchvision_ssd300_vgg16.map --out"
checks=$((checks + 1)); [ "$(grep -c 'sodet import' <<<"$out")" -eq 1 ] || bad "speaks of files that are not there"
out=$("$SODET_SOURCE/scripts/download_weights" --list --to "$PWD/elsewhere" 2>&1); code=$?; is_code 0; out_has licence; out_has "in all"; absent elsewhere
for name in voc coco; do
    line="download_$name --list"
    out=$("$SODET_SOURCE/scripts/download_$name" --list --to "$PWD/elsewhere" 2>&1); code=$?; is_code 0; out_has licence; out_has "in all"; out_has GB; absent elsewhere
done
finish 58
