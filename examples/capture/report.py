"""Write what the capture found, from merged.json and neighbours.json, as a short Markdown page."""

from __future__ import annotations

import json
from pathlib import Path


def report() -> str:
    merged = json.loads(Path("merged.json").read_text(encoding="utf-8"))
    sums = json.loads(Path("neighbours.json").read_text(encoding="utf-8"))
    nearest = sums["gap_nearest"] / sums["rows"] / 1_000_000
    typical = sums["gap_all"] / sums["pairs"] / 1_000_000
    lines = ["# What the log costs", "", "| model | held out, bits/character | seen |", "|---|---|---|"]
    lines += [
        f"| {name} | {found['held_out_bits']:.3f} | {found['seen_bits']:.3f} |"
        for name, found in merged["models"].items()
    ]
    lines += ["", f"Best on unseen text: {merged['best']}. The dearest prefixes:", ""]
    lines += [f"- line {found['line']}: `{found['prefix']}`" for found in merged["hardest"]]
    lines += ["", f"A prefix and its nearest neighbour differ by {nearest:.1f} bits, any two by {typical:.1f}."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path("report.md").write_text(report(), encoding="utf-8")
    print(report())
