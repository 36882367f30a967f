"""The JSON Schema of the plan format, made from the tables of keys."""

from __future__ import annotations

from typing import Any

from widelane.plan.keys import PLAN


def schema() -> dict[str, Any]:
    """The schema, draft 2020-12. It says what can be said about one value; checks between keys are the parser's."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "widelane plan",
        "description": "GPU work by phases, and the axes along which each phase shards.",
    } | PLAN.schema()
