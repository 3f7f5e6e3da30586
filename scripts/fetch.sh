# scripts/fetch.sh: what the download scripts share; they source it. A table of theirs has a line per file:
#     url  bytes  checksum  folder
# bytes: ~N where the source says no more than about how many. checksum: an MD5, or sha256:<its first digits>, which is what the names of
# PyTorch's files end with. The file goes to <to>/<name>, is compared with its checksum, and an archive is unpacked into <to>/<folder>.
#   fetch_main NAME LICENCE "$@" <table
# Flags: --to FOLDER (data), --list (only say what would be fetched), --only WORD, --from URL (a mirror: the names below it).

fetch_die() { echo "$0: $*" >&2; exit 2; }
fetch_size() { awk -v n="$1" 'BEGIN { if (n >= 1e9) printf "%.1f GB", n / 1e9; else if (n >= 1e6) printf "%.0f MB", n / 1e6; else printf "%d bytes", n }'; }
fetch_have() { stat -c %s "$1" 2>/dev/null || echo 0; }
fetch_sum() { # file, checksum of the table: the file's, in that form
    local sum
    case "$2" in
    sha256:*) sum=sha256:$(sha256sum <"$1"); echo "${sum:0:${#2}}" ;;
    *) sum=$(md5sum <"$1"); echo "${sum%% *}" ;;
    esac
}
fetch_is_archive() { case "$1" in *.zip | *.tar) true ;; *) false ;; esac; }

# An interrupted download is NAME.part and is continued; only a whole file with the right checksum gets its name.
fetch_one() { # url, bytes, checksum, file
    local url=$1 bytes=$2 want=$3 file=$4 part=$4.part sum whole=""
    if [ "${bytes#"~"}" != "$bytes" ]; then # whether all is there, the checksum alone can tell
        [ ! -f "$part" ] || [ "$(fetch_sum "$part" "$want")" != "$want" ] || whole=1
    else
        [ "$(fetch_have "$part")" -le "$bytes" ] || rm -f "$part"
        [ "$(fetch_have "$part")" -lt "$bytes" ] || whole=1
    fi
    if [ -z "$whole" ]; then
        [ "$(fetch_have "$part")" -eq 0 ] || echo "going on with $part at $(fetch_size "$(fetch_have "$part")")"
        curl --location --fail --show-error --progress-bar --retry 5 --retry-delay 3 --connect-timeout 30 --continue-at - --output "$part" "$url" ||
            fetch_die "$url: not fetched; run the same command again to go on where it stopped, or name a mirror by --from"
    fi
    [ "${bytes#"~"}" != "$bytes" ] || [ "$(fetch_have "$part")" -eq "$bytes" ] ||
        fetch_die "$part: $(fetch_have "$part") bytes, $bytes were expected: $url has changed; name another source by --from"
    sum=$(fetch_sum "$part" "$want")
    if [ "$sum" != "$want" ]; then
        rm -f "$part"
        fetch_die "$url: the checksum is $sum, $want was expected; the file was removed: run the command again, or name another source by --from"
    fi
    mv "$part" "$file"
}

fetch_unpack() { # archive, folder
    mkdir -p "$2"
    case "$1" in
    *.zip) command -v unzip >/dev/null || fetch_die "unzip is needed for $1: apt-get install unzip"
           unzip -q -o "$1" -d "$2" ;;
    *.tar) tar -xf "$1" -C "$2" ;;
    *) [ "$1" -ef "$2/${1##*/}" ] || cp "$1" "$2/" ;;
    esac || fetch_die "$1: could not be unpacked into $2 (is the disk full?); run the command again"
    : >"$1.unpacked"
}

fetch_main() { # name of the data, its licence, the script's arguments; the table is the standard input
    local name=$1 licence=$2 to=data list="" only="" from="" url bytes sum folder archive total=0 disk=0 free rows=""
    shift 2
    while [ $# -gt 0 ]; do
        case "$1" in
        --list) list=1; shift; continue ;;
        --to | --only | --from) [ $# -ge 2 ] && [ -n "$2" ] || fetch_die "$1: a value is expected" ;;
        *) fetch_die "$1: no such argument; there are --to FOLDER, --only WORD, --from URL, --list" ;;
        esac
        case "$1" in --to) to=$2 ;; --only) only=$2 ;; --from) from=${2%/} ;; esac
        shift 2
    done
    command -v curl >/dev/null || fetch_die "curl is needed: apt-get install curl"
    echo "$name; licence: $licence"
    while read -r url bytes sum folder; do
        [[ -n "$url" && "$url" == *"$only"* ]] || continue
        archive=$to/${url##*/}
        [ -z "$from" ] || url=$from/${url##*/}
        if [ -f "$archive.unpacked" ]; then
            echo "  there already: $archive, in $to/$folder"
            continue
        fi
        echo "  $url: $(fetch_size "${bytes#"~"}") into $to/$folder"
        total=$((total + ${bytes#"~"})) disk=$((disk + ${bytes#"~"}))
        ! fetch_is_archive "$archive" || disk=$((disk + bytes))
        rows+="$url $bytes $sum $archive $to/$folder"$'\n'
    done
    [ -n "$rows" ] || { [ "$total" -eq 0 ] && echo "nothing to fetch"; return 0; }
    echo "  in all $(fetch_size "$total"), $(fetch_size "$disk") on the disk"
    [ -z "$list" ] || return 0
    mkdir -p "$to" || fetch_die "$to: no folder can be made there"
    free=$(($(df --output=avail -B1 "$to" | tail -n 1)))
    [ "$free" -ge "$disk" ] || fetch_die "$to: $(fetch_size "$free") are free, $(fetch_size "$disk") are needed; name another folder by --to"
    while read -r url bytes sum archive folder; do
        [ -n "$url" ] || continue
        if [ ! -f "$archive" ]; then fetch_one "$url" "$bytes" "$sum" "$archive"; fi
        fetch_unpack "$archive" "$folder"
    done <<<"$rows"
    echo "$name: in $to"
}
