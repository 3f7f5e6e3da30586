#!/usr/bin/env bash
# Completion of three shells and the manual's pages: made from the tables, so every command and every flag is in each; bash's is used.
. "$SODET_SOURCE/tests/cli/lib"
same() { checks=$((checks + 1)); [ "$1" = "$2" ] || bad "\"${1:0:300}\" is not \"${2:0:300}\""; }
has() { checks=$((checks + 1)); [[ " $1 " == *" $2 "* ]] || bad "\"${1:0:300}\" lacks \"$2\""; }
lacks() { checks=$((checks + 1)); [[ " $1 " != *" $2 "* ]] || bad "\"${1:0:300}\" has \"$2\""; }
run --help
commands=$(sed -n 's/^  \([a-z]*\) .*/\1/p' <<<"$out")
checks=$((checks + 1)); [ "$(wc -w <<<"$commands")" -ge 11 ] || bad "only these commands: $commands"
flags_of() { "$sodet" help "$1" | sed -n 's/^  \(-[a-z-]*\) .*/\1/p'; }

for shell in bash zsh fish; do run help --completion $shell; is_code 0; err_empty; printf '%s\n' "$out" >$shell; done
run help --completion bahs; refused "--completion bahs" "did you mean bash?"
run help --completion csh; refused "bash, zsh or fish is expected"
run help --completion bash train; refused "stands alone"
run help --man trian; refused "--man trian: there is no such command"
run help --man train eval; refused "eval is one too many"

# bash: as its readline would ask. Words as bash splits them, = alone.
line="bash's completion"
bash -n bash; code=$?; is_code 0
. ./bash
ask() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=(); line="completion of $*"; _sodet; out=${COMPREPLY[*]} code=0; }
mkdir -p folder "a folder" && touch x.ini y.png "two words.png" folder/z.ini
ask sodet de; has "$out" detect
ask sodet ""; for c in $commands; do has "$out" "$c"; done
for c in $commands; do
    ask sodet "$c" -
    for flag in $(flags_of "$c"); do has "$out" "$flag"; done
done
ask sodet detect --thr; same "$out" --threshold
ask sodet train x; same "$out" x.ini
ask sodet train ""; has "$out" x.ini; has "$out" folder; lacks "$out" y.png
ask sodet train folder/; same "$out" folder/z.ini
ask sodet train run.dev; same "$out" run.devices=
ask sodet train optimizer.; has "$out" optimizer.lr=
ask sodet detect ""; has "$out" y.png; lacks "$out" run.seed=
ask sodet detect two; same "${COMPREPLY[0]}" "two words.png"
ask sodet detect x.ini --draw ""; same "$(printf '%s\n' "${COMPREPLY[@]}" | sort)" "$(printf 'a folder\nfolder')"
ask sodet detect --draw = fo; same "$out" folder
ask sodet detect --draw =; has "$out" folder
ask sodet detect --threshold ""; same "$out" ""
ask sodet data --split ""; same "$out" "train val"
ask sodet data ex; same "$out" export
ask sodet bench ""; has "$out" inference; has "$out" x.ini
ask sodet list he; same "$out" head
ask sodet list y; same "$out" ""
ask sodet help --completion z; same "$out" zsh
ask sodet help optim; same "$out" optimizer
ask sodet new ""; has "$out" dataset; lacks "$out" x.ini
ask sodet frobnicate ""; same "$out" ""
ask sodet train run.devices = ""; has "$out" x.ini

# zsh and fish: by their own parsers where they are, and by what must be in them.
for shell in zsh fish; do
    line="$shell's completion" out=$(cat $shell) err=""
    if command -v $shell >/dev/null; then $shell -n $shell; code=$?; is_code 0; fi
    for c in $commands; do
        case $shell in
        zsh) part=$(awk -v c="        $c)" '$0 == c { on = 1 } on { print } on && / ;;$/ { exit }' zsh) ;;
        fish) part=$(grep "__sodet_command $c'" fish) ;;
        esac
        for flag in $(flags_of "$c"); do
            checks=$((checks + 1))
            case $shell:$flag in
            zsh:*) grep -q -e "'$flag[=+]*\[" <<<"$part" || bad "$c lacks $flag" ;;
            fish:--*) grep -q -e " -l ${flag#--} " <<<"$part" || bad "$c lacks $flag" ;;
            fish:-*) grep -q -e " -s ${flag#-} " <<<"$part" || bad "$c lacks $flag" ;;
            esac
        done
    done
    out_has "run.devices="
done
checks=$((checks + 1)); [ "$(head -n 1 zsh)" = "#compdef sodet" ] || bad "zsh's first line is not #compdef"

# man: the page, as man shows it, holds name, synopsis and every flag with its text; roff has nothing to complain about.
if command -v groff >/dev/null; then show() { groff -man -Tascii -ww -rLL=200n "$1" 2>roff | sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g'; }
else show() { : >roff; sed 's/^\.[A-Z]* *//; s/\\f[BIR]//g; s/\\-/-/g; s/\\&//g; s/\\e/\\/g' "$1"; }; fi
for c in "" $commands; do
    run help --man $c; is_code 0; err_empty
    printf '%s\n' "$out" >page.1
    out=$(show page.1) err=$(cat roff)
    err_empty
    out_has NAME; out_has "EXIT STATUS"; out_has "sodet${c:+-$c}"
    for flag in $([ -z "$c" ] || flags_of "$c"); do
        checks=$((checks + 1)); grep -q -e "^ *$flag\( \|$\)" <<<"$out" || bad "lacks $flag"
    done
    if [ -z "$c" ]; then for k in $commands; do out_has "sodet-$k"; done; fi
done
run help --man detect
out=$(show <(echo "$out") | tr -s ' \n' ' '); out_has "--threshold SCORE what has at least this score counts as found (0.5)"
out_has "ffmpeg -i x.mp4 -f rawvideo -pix_fmt rgb24 - | sodet detect best.safetensors - --size 640x480"
run help --man help
out=$(show <(echo "$out") | tr -s ' \n' ' '); out_has "source <(sodet help --completion bash)"

# What the build made is what the program prints.
for pair in "completions/sodet:--completion bash" "completions/_sodet:--completion zsh" "completions/sodet.fish:--completion fish" "man/sodet.1:--man" "man/sodet-eval.1:--man eval"; do
    run help ${pair#*:}; is_code 0
    checks=$((checks + 1)); cmp -s "$work/.out" "$SODET_BUILD/${pair%%:*}" || bad "${pair%%:*} in the build is something else"
done
finish 600
