#!/bin/sh
# The batch script of every job: it finds a Python for the keeper, which lies in the job's folder with the runner.
for python in python3 python3.13 python3.12 python3.11 python3.10 python3.9; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        exec "$python" keeper.py
    fi
done
echo "widelane: no Python 3.9 or newer on $(hostname): $(command -v python3) $(python3 --version 2>&1)"
exit 127
