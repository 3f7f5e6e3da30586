#!/usr/bin/env bash
# Field case O-43: misspelt and misplaced keys are errors with line and suggestion, exit code 2, before data is read.
. "$SODET_SOURCE/tests/cli/lib"
case_is() { # text expected...
    { parts; printf '%b' "$1"; } >x.ini
    run check x.ini
    shift
    refused "sodet check: x.ini:" "$@"
}
case_is '[optimizer]\nlearing_rate = 0.1\n' 'x.ini:8: [optimizer] learing_rate = 0.1: unknown key; did you mean lr in [optimizer]?'
case_is '[model]\nbatch_size = 8\n' 'x.ini:7: [model]: unknown section'
case_is '[trian]\nbatch = 8\n' 'x.ini:7: [trian]: unknown section; did you mean [train]?'
case_is '[schedule]\nnum-epochs = 3\n' 'x.ini:8: [schedule] num-epochs = 3: unknown key; did you mean total in [schedule]?'
case_is '[neck]\nplugin = none\nwidht = 2\n' 'x.ini:9: [neck] widht = 2: unknown key of neck/none'
case_is '[schedule]\nlr_gamma =\n' 'x.ini:8: [schedule] lr_gamma = : unknown key; did you mean factor in [schedule]?'
case_is '[transform]\ntrain = hfilp\n' 'x.ini:8: [transform] train = hfilp:' 'did you mean hflip?'
finish 20
