#!/usr/bin/env bash
# Field case O-44: comments, quotes, CR LF, percent: the right value, or an error with the remedy.
. "$SODET_SOURCE/tests/cli/lib"
value() { # line expected
    { parts; printf '[run]\n%b' "$1"; } >x.ini
    run check --plain x.ini
    is_code 0
    out_has "$2"
}
wrong() { # line expected...
    { parts; printf '[run]\n%b' "$1"; } >x.ini
    run check x.ini
    shift
    refused "x.ini:8:" "$@"
}
value 'seed = 12 # short\n' $'\nseed = 12\n'
value 'name = "my; data #1"\n' 'name = "my; data #1"'
wrong 'name = run#3\n' 'write name = "run#3"'
value 'name = "run#3"\n' 'name = "run#3"'
value 'name = ; nothing\n' $'name = \n'
wrong 'timeout = 50%\n' '"%" is no unit'
value 'name = 100%d\n' 'name = 100%d'
value 'name = a\r\nseed = 5\r\n' $'\nseed = 5\n'
value 'name = a\nseed = 6' $'\nseed = 6\n'
{ parts; printf '[my plugin]\nx = 1\n'; } >x.ini
run check x.ini; refused "x.ini:7:" "cannot stand in the name of a section"
wrong "name = $(printf 'x%.0s' $(seq 5000))\n" "the line has 5007 characters, at most 1000"
finish 30
