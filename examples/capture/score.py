"""One unit: train a character n-gram model on a sample of the text and score every prefix with it.

    python3 score.py --model fivegram --draw-set 3 --out out/fivegram/3.json

A draw set decides which half of the sentences the model sees. Costs are whole micro-bits, so that sums of
them are the same in any order.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from math import log2
from pathlib import Path

ORDERS = {"bigram": 2, "fivegram": 5}
PREFIX_CHARACTERS = 40
START = "\x02"

Counts = list[dict[str, Counter[str]]]


def sentences(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def drawn(draw_set: int, count: int) -> list[bool]:
    """Which sentences this draw set trains on: about half of them."""
    return [hashlib.sha256(f"{draw_set}:{index}".encode()).digest()[0] % 2 == 0 for index in range(count)]


def train(lines: list[str], order: int) -> Counts:
    """For each context length below `order`: context -> the characters that followed it."""
    counts: Counts = [{} for _ in range(order)]
    for line in lines:
        padded = START * (order - 1) + line
        for end in range(order - 1, len(padded)):
            for length in range(order):
                counts[length].setdefault(padded[end - length : end], Counter())[padded[end]] += 1
    return counts


def summarize(counts: Counts) -> list[dict[str, tuple[Counter[str], int, int]]]:
    """Add to each context how often it was seen and how many characters followed it."""
    return [{key: (seen, sum(seen.values()), len(seen)) for key, seen in table.items()} for table in counts]


def cost(prefix: str, tables: list[dict[str, tuple[Counter[str], int, int]]], alphabet: int) -> int:
    """Micro-bits of the prefix under Witten-Bell smoothing, from a uniform guess up to the longest context."""
    order = len(tables)
    padded = START * (order - 1) + prefix
    bits = 0.0
    for end in range(order - 1, len(padded)):
        probability = 1 / alphabet
        for length in range(order):
            entry = tables[length].get(padded[end - length : end])
            if entry is None:
                break
            seen, total, kinds = entry
            probability = (seen[padded[end]] + kinds * probability) / (total + kinds)
        bits -= log2(probability)
    return round(bits * 1_000_000)


def score(lines: list[str], model: str, draw_set: int) -> dict[str, object]:
    trained = drawn(draw_set, len(lines))
    tables = summarize(train([line for line, seen in zip(lines, trained, strict=True) if seen], ORDERS[model]))
    alphabet = len(set("".join(lines)))
    return {
        "model": model,
        "draw_set": draw_set,
        "trained": "".join("x" if seen else "." for seen in trained),
        "micro_bits": [cost(line[:PREFIX_CHARACTERS], tables, alphabet) for line in lines],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(ORDERS), required=True)
    parser.add_argument("--draw-set", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    lines = sentences(Path(__file__).with_name("text.txt"))
    result = score(lines, asked.model, asked.draw_set)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(result) + "\n", encoding="utf-8")
    print(f"{asked.model} {asked.draw_set}: scored {len(lines)} prefixes")


if __name__ == "__main__":
    main()
