#!/bin/sh
# Keeps a runner going in FOLDER: records its own process, starts the command, again after a crash, and passes TERM on.
#   keep.sh FOLDER COMMAND...
# The lock on FOLDER/lock comes in as an open file and is held by keeper and command for as long as they live.
folder="$1"
shift
cat "/proc/$$/stat" >"$folder/process.new" && mv "$folder/process.new" "$folder/process" || exit 1

child=
ending=
trap 'ending=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT HUP

starts=0
while :; do
    starts=$((starts + 1))
    "$@" &
    child=$!
    wait "$child"
    code=$?
    while kill -0 "$child" 2>/dev/null; do # a trapped signal ends `wait` early
        wait "$child"
        code=$?
    done
    child=
    echo "keep: start $starts ended with $code"
    # 0: done; 2: its arguments or spec are no use.
    if [ "$code" -eq 0 ] || [ "$code" -eq 2 ] || [ -n "$ending" ] || [ "$starts" -ge 8 ]; then
        exit "$code"
    fi
    sleep "$starts"
    [ -z "$ending" ] || exit 1
done
