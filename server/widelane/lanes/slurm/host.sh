# Runs on the login host, from standard input: assignments of $root, $name, $attempt and $silence stand before it,
# and one call of a function below behind it. It stands in functions so that a text that was cut off does nothing.
# Only lines that begin with "widelane " count as its answer, and only when the last one says "done".

say() { printf 'widelane %s\n' "$*"; }

refuse() { # refuse COMMAND CODE TEXT: a client command that failed, in its own words
    say "refused $1 $2"
    printf '%s\n' "$3" | sed 's/^/widelane text /'
}

place() { # $root is absolute, or starts from the home folder
    case $root in
        /*) ;;
        '~') root=$HOME ;;
        '~/'*) root=$HOME/${root#'~/'} ;;
        *) root=$HOME/$root ;;
    esac
    folder=$root/$name
}

rows() { # rows OPTIONS...: this user's jobs, one a line; fails with the reason in $found
    found=$(squeue -h -u "$(id -un)" "$@" -o 'widelane job %i|%j|%T|%r|%S|%V|%N|%k' 2>&1) || return
    found=$(printf '%s\n' "$found" | sed -n '/^widelane job .*|widelane=1\(,.*\)\{0,1\}$/p')
}

write() { # write FILE: standard input, whole or not at all
    cat >"$1.new" && mv "$1.new" "$1"
}

locked() { # the lock of the folder, on descriptor 9; fails when another holds it, or the folder went meanwhile
    [ -d "$folder" ] && exec 9>>"$folder/lock" || return
    flock -w 20 9 2>/dev/null
    # 1: held. A file system without locks is no reason to stop: of two jobs, only one gets the claim to work.
    [ $? -ne 1 ] && [ "$folder/lock" -ef /dev/fd/9 ]
}

silent_for() { # seconds since the job last gave a sign of life, by the clock of the file system
    : >"$folder/now"
    echo $(($(stat -c %Y "$folder/now") - $(stat -c %Y "$folder/beat" 2>/dev/null || echo 0)))
}

sight() { # what there is of one name, its jobs apart
    [ -d "$folder" ] || return 0
    say "folder $name"
    for file in job claim ended cancelled deleting intent; do
        [ -f "$folder/$file" ] && say "$file $(cat "$folder/$file")"
    done
    [ -f "$folder/claim" ] && [ ! -f "$folder/ended" ] && say "silent $(silent_for)"
    [ -f "$folder/host/progress.json" ] && say "progress $(tr -d '\n' <"$folder/host/progress.json")"
    [ -f "$folder/log" ] && tail -c 1500 "$folder/log" | sed 's/^/widelane log /'
    return 0
}

details() { # details ID...: what squeue's columns don't tell; accounting where the controller has forgotten
    for id in "$@"; do
        if shown=$(scontrol -o show job "$id" 2>/dev/null); then
            say "detail $shown"
        elif known=$(sacct -n -X -P -j "$id" -o JobID,JobName,State,ExitCode,DerivedExitCode,NodeList 2>/dev/null); then
            printf '%s\n' "$known" | sed -n 's/^[0-9]/widelane account &/p'
        fi
    done
}

look() {
    if ! rows -t all -n "$name"; then
        refuse squeue $? "$found"
        return
    fi
    printf '%s\n' "$found"
    sight
    # shellcheck disable=SC2046 # job ids are numbers
    details $(
        {
            printf '%s\n' "$found" | sed -n 's/^widelane job \([0-9]*\)|.*/\1/p'
            cat "$folder/job" 2>/dev/null
        } | sort -u
    )
}

list() { # everything of ours under $root and in the queue
    if ! rows -t all; then
        refuse squeue $? "$found"
        return
    fi
    printf '%s\n' "$found"
    for folder in "$root"/*/; do
        folder=${folder%/}
        name=${folder##*/}
        sight
    done
}

submit() { # submit OPTIONS...: one job of this name and attempt, whoever asks and however often
    mkdir -p "$folder" || {
        say "unwritable $folder"
        return
    }
    if ! locked; then
        say busy
        return
    fi
    if [ ! -f "$folder/deleting" ] && [ ! -s "$folder/job" ] && ! taken; then
        if ! rows -t all -n "$name"; then
            refuse squeue $? "$found"
            return
        fi
        id=$(printf '%s\n' "$found" | mine | head -n 1)
        if [ -n "$id" ]; then
            echo "$id" | write "$folder/job"
        else
            send "$@"
        fi
    fi
    look
}

taken() { # whether another attempt has this name
    [ -f "$folder/attempt" ] && [ "$(cat "$folder/attempt")" != "$attempt" ]
}

mine() { # ids of this attempt's jobs that wait, work or worked; a refused submit leaves a record without node
    grep -F ",widelane-attempt=$attempt," | awk -F'|' '
        { sub(/^widelane job /, "", $1) }
        $3 == "PENDING" || $7 != "" { print $1 }'
}

send() {
    echo "$attempt" | write "$folder/attempt" && deliver || {
        say "unwritable $folder"
        return
    }
    log=$(printf '%s' "$folder/log" | sed 's/%/%%/g')
    id=$(job_script | sbatch --parsable --job-name="$name" --chdir="$folder" --output="$log" "$@" \
        2>"$folder/refusal" 9>&-)
    code=$?
    if [ "$code" -eq 0 ]; then
        echo "${id%%;*}" | write "$folder/job"
    else
        refuse sbatch "$code" "$(cat "$folder/refusal")"
    fi
}

delete() {
    if [ -d "$folder" ]; then
        : >"$folder/deleting"
        if ! locked; then
            say busy
            return
        fi
    fi
    if ! rows -n "$name"; then
        refuse squeue $? "$found"
        return
    fi
    for id in $(printf '%s\n' "$found" | sed -n 's/^widelane job \([0-9]*\)|.*/\1/p'); do
        [ ! -d "$folder" ] || [ -f "$folder/cancelled" ] || date +%s | write "$folder/cancelled"
        said=$(scancel "$id" 2>&1) || {
            refuse scancel $? "$said"
            return
        }
    done
    if rows -n "$name" && [ -z "$found" ] && [ -d "$folder" ] && over; then
        gone=$root/.gone-$name-$$
        mv "$folder" "$gone" && (rm -rf "$gone" 9>&- </dev/null >/dev/null 2>&1 &)
    fi
    look
}

over() { # whether nothing of a job that isn't in the queue can be at work: a node that was lost may work on
    [ -f "$folder/claim" ] && [ ! -f "$folder/ended" ] || return 0
    state=$(squeue -h -t all -j "$(cat "$folder/claim")" -o %T 2>/dev/null)
    case $state in
        '' | NODE_FAIL) [ "$(silent_for)" -ge "$silence" ] ;;
        *) true ;;
    esac
}

room() { # room OPTIONS...: the nodes of the partition
    found=$(sinfo -h -N "$@" -o 'widelane node %N|%P|%t|%c|%m|%l|%G' 2>&1) || {
        refuse sinfo $? "$found"
        return
    }
    printf '%s\n' "$found" | sed -n '/^widelane node /p'
}

check() { # check PROBE: what a create needs here
    for command in sbatch squeue scontrol scancel sinfo python3 base64; do
        command -v "$command" >/dev/null || say "missing $command"
    done
    { mkdir -p "$root" && [ -w "$root" ]; } 2>/dev/null || say "unwritable $root"
    [ -z "$1" ] || say "probe $(cat "$1" 2>/dev/null)"
}
