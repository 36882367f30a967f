"""Recorded answers of providers with the class of each: what the lanes' classifiers are tested on."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from widelane.facts.table import DATA


@cache
def lane_errors() -> dict[str, Any]:
    """Answers of SLURM, ssh and RunPod: `cases`, each with `lane`, `op`, `input`, and `expect` (class, action)."""
    answers: dict[str, Any] = json.loads((DATA / "lane_errors.json").read_text(encoding="utf-8"))
    return answers
