"""Start one rank a GPU and add up what they print: a launcher in the manner of torchrun, without torch.

    python3 launch.py --ranks 4 --out neighbours.json neighbours.py merged.json

Each rank sees one device. A rank prints one JSON object of whole numbers as its last line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path


def devices(ranks: int) -> list[str]:
    """One device a rank; refuses when fewer are visible than ranks were asked for."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if len(visible) < ranks:
        sys.exit(f"{ranks} ranks asked for, {len(visible)} devices visible")
    return visible[:ranks]


def start(rank: int, ranks: int, device: str, command: list[str]) -> subprocess.Popen[str]:
    env = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(ranks), "CUDA_VISIBLE_DEVICES": device}
    return subprocess.Popen([sys.executable, *command], env=env, stdout=subprocess.PIPE, text=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    running = [start(rank, asked.ranks, device, asked.command) for rank, device in enumerate(devices(asked.ranks))]
    answers = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        sys.exit(f"ranks ended with {[process.returncode for process in running]}")
    total: Counter[str] = Counter()
    for answer in answers:
        total.update(json.loads(answer.splitlines()[-1]))
    asked.out.write_text(json.dumps(dict(sorted(total.items()))) + "\n", encoding="utf-8")
    print(f"reduced {len(answers)} ranks")


if __name__ == "__main__":
    main()
