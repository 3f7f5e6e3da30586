#!/usr/bin/env bash
# Field case O-45: paths in an INI are relative to it, those on the command line to the working directory.
. "$SODET_SOURCE/tests/cli/lib"
real=$(realpath "$work")
mkdir -p cfg/model other
parts >cfg/model/m.ini
printf '[run]\nbase = model/m.ini\ninit = ../data/w.bin\n' >cfg/a.ini
ln -s cfg/a.ini link.ini
for start in "$work:cfg/a.ini" "/:$real/cfg/a.ini" "$work/cfg:a.ini" "$work/other:../cfg/a.ini" "$work:link.ini" "/:$real/link.ini"; do
    cd "${start%%:*}" || exit 1
    run check "${start#*:}"
    is_code 0
    out_has "init = $real/data/w.bin "
done
cd "$work/other" || exit 1
run check ../cfg/a.ini run.init=here.bin; is_code 0; out_has "init = $real/other/here.bin "
HOME=/home/nobody run check ../cfg/a.ini run.init='~/w.bin'; is_code 0; out_has "init = /home/nobody/w.bin "
run check ../cfg/a.ini run.init='$HOME/w.bin'; refused "environment variables are not expanded"
run check ../cfg/a.ini run.init='~other/w.bin'; refused "~name is not expanded"
# A missing fragment is named with its full path.
printf '[run]\nbase = model/none.ini\n' >../cfg/b.ini
run check ../cfg/b.ini; refused "../cfg/b.ini:2: [run] base = model/none.ini: neither $real/cfg/model/none.ini nor "
finish 22
