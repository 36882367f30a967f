"""Merge the units of a capture: what each model pays for text that it hasn't seen.

    python3 merge.py out merged.json

Reads every unit file below the folder, in any order; whole numbers until the last division, so the merged file
is the same however the units were spread.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from score import PREFIX_CHARACTERS, sentences

HARDEST = 3


def bits_per_character(micro_bits: int, characters: int) -> float:
    return round(micro_bits / characters / 1_000_000, 6)


def per_model(units: list[dict[str, Any]], lengths: list[int]) -> dict[str, Any]:
    """Held-out and seen bits per character over all draw sets of one model."""
    spent, characters = {"x": 0, ".": 0}, {"x": 0, ".": 0}
    for unit in units:
        for mark, micro_bits, length in zip(unit["trained"], unit["micro_bits"], lengths, strict=True):
            spent[mark] += micro_bits
            characters[mark] += length
    return {
        "draw_sets": sorted(unit["draw_set"] for unit in units),
        "held_out_bits": bits_per_character(spent["."], characters["."]),
        "seen_bits": bits_per_character(spent["x"], characters["x"]),
    }


def held_out_cost(units: list[dict[str, Any]], prefix: int) -> int:
    """Mean micro-bits of a prefix over the units that didn't train on it; 0 when all did."""
    costs = [unit["micro_bits"][prefix] for unit in units if unit["trained"][prefix] == "."]
    return sum(costs) // len(costs) if costs else 0


def merge(units: list[dict[str, Any]], lines: list[str]) -> dict[str, Any]:
    prefixes = [line[:PREFIX_CHARACTERS] for line in lines]
    lengths = [len(prefix) for prefix in prefixes]
    by_model: dict[str, list[dict[str, Any]]] = {}
    for unit in units:
        by_model.setdefault(unit["model"], []).append(unit)
    models = {model: per_model(by_model[model], lengths) for model in sorted(by_model)}
    best = min(models, key=lambda model: models[model]["held_out_bits"])
    costs = [held_out_cost(by_model[best], index) for index in range(len(prefixes))]
    hardest = sorted(range(len(prefixes)), key=lambda index: (-costs[index], index))[:HARDEST]
    return {
        "units": len(units),
        "prefixes": len(prefixes),
        "models": models,
        "best": best,
        "hardest": [{"line": index + 1, "prefix": prefixes[index], "micro_bits": costs[index]} for index in hardest],
        "micro_bits": costs,
    }


def main() -> None:
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    units = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*/*.json"))]
    merged = merge(units, sentences(Path(__file__).with_name("text.txt")))
    target.write_text(json.dumps(merged) + "\n", encoding="utf-8")
    print(f"merged {merged['units']} units; best: {merged['best']}")


if __name__ == "__main__":
    main()
