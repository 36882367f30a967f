"""Units on one host: 24 of one second over 8 simulated GPUs, and 1,000 that do nothing, against bare baselines.

    python benchmarks/runner_units.py [ROUNDS]

Runner and baseline (`xargs -P8`) take turns, so that other work on the machine hits both. Nothing is asserted.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from widelane.runner import bundle

WIDTH = 8
IDEAL = 3.0


def host(folder: Path, argv: list[str], count: int) -> tuple[float, Path]:
    """Seconds from the start of the runner to its end, and its root folder."""
    folder.mkdir()
    runner = folder / "runner.pyz"
    runner.write_bytes(bundle.build())
    tool = folder / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    cards = "".join(f"{i}, GPU-{i}, NVIDIA A100-SXM4-80GB, 81920\n" for i in range(WIDTH))
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{cards}END\n")
    tool.chmod(0o755)
    store = folder / "store"
    (store / "specs").mkdir(parents=True)
    units = [{"index": i, "digest": f"{i:064x}", "argv": argv, "gpus": 1} for i in range(count)]
    spec = {"spec": 1, "run_id": "R", "dispatch_id": "D", "lease": "L", "units": units}
    (store / "specs" / "s.json").write_text(json.dumps({**spec, "requested_width": WIDTH, "expected_width": WIDTH}))
    command = ["python3", str(runner), "host", "--store", store.as_uri(), "--spec", "specs/s.json"]
    env = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}"}
    begin = time.perf_counter()
    subprocess.run([*command, "--root", str(folder / "root")], env=env, check=True)
    seconds = time.perf_counter() - begin
    finished = json.loads((store / "leases/L/finished.json").read_text())
    if finished["succeeded"] != count:
        sys.exit(f"not all units succeeded: {finished}")
    return seconds, folder / "root"


def bare(argv: list[str], count: int) -> float:
    """Seconds that `xargs -P8` takes for the same."""
    begin = time.perf_counter()
    lines = "\n".join(" ".join(argv) for _ in range(count))
    subprocess.run(["xargs", f"-P{WIDTH}", "-L1", "env"], input=lines.encode(), check=True)
    return time.perf_counter() - begin


def gaps(root: Path) -> list[float]:
    """Seconds from the end of each attempt to the next start on the machine that it made room for."""
    records = [
        (json.loads((path / "start.json").read_text()), json.loads((path / "exit.json").read_text()))
        for path in (root / "attempts").iterdir()
    ]
    ends = sorted(ended["ended"] for _, ended in records)
    starts = sorted(start["started"] for start, _ in records)[WIDTH:]
    return [start - end for start, end in zip(starts, ends, strict=False)]


def rounds(
    count: int, run: Callable[[Path], tuple[float, Path]], baseline: Callable[[], float]
) -> tuple[list[float], list[float], list[float]]:
    ours: list[float] = []
    theirs: list[float] = []
    between: list[float] = []
    for number in range(count):
        with tempfile.TemporaryDirectory() as folder:
            seconds, root = run(Path(folder) / str(number))
            ours.append(seconds)
            between += gaps(root)
        theirs.append(baseline())
    return ours, theirs, between


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    ours, theirs, between = rounds(
        count, lambda folder: host(folder, ["sleep", "1"], 24), lambda: bare(["sleep", "1"], 24)
    )
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(f"24 x sleep 1 on 8 GPUs: {mine:.2f} s, {mine / IDEAL:.2f} x ideal")
    print(f"the same by xargs -P8: {other:.2f} s; ratio {mine / other:.2f}")
    p95 = statistics.quantiles(between, n=20)[-1]
    print(f"exit to next start: median {1e3 * statistics.median(between):.1f} ms, p95 {1e3 * p95:.1f} ms")
    ours, theirs, between = rounds(count, lambda folder: host(folder, ["true"], 1000), lambda: bare(["true"], 1000))
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(f"1,000 x true on 8 GPUs: {mine:.2f} s; xargs -P8 {other:.2f} s; ratio {mine / other:.1f}")


if __name__ == "__main__":
    main()
