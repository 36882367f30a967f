"""JSON schemas as hosts and models should see them: no titles, no references, no deeper than is read."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel

_NOISE = frozenset({"title", "default", "additionalProperties"})
_SHOWN_WORDS = 6
"""An answer's word list that is longer is left to the documents."""


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Schema of a tool's arguments: flat, with descriptions, unknown names refused."""
    schema = model.model_json_schema()
    properties = {name: _bare(value, {}, 1) for name, value in schema["properties"].items()}
    slim: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if "required" in schema:
        slim["required"] = schema["required"]
    return slim


def output_schema(model: type[BaseModel], depth: int) -> dict[str, Any]:
    """Schema of a tool's answer down to `depth` levels of objects; what is deeper is an object without detail."""
    schema = _whole(model)
    return _bare(schema, schema.get("$defs", {}), depth, described=False)


@cache
def _whole(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(mode="serialization")


def _bare(node: dict[str, Any], defs: dict[str, Any], depth: int, described: bool = True) -> dict[str, Any]:
    """`node` with references put in place and noise left out."""
    if "$ref" in node:
        node = defs[node["$ref"].rpartition("/")[2]]
    kind = node.get("type")
    if kind == "object":
        return _object(node, defs, depth, described)
    slim = {key: value for key, value in node.items() if key not in _NOISE and key not in ("anyOf", "items")}
    if not described:
        slim.pop("description", None)
        if len(slim.get("enum", ())) > _SHOWN_WORDS:
            del slim["enum"]
    if "anyOf" in node:
        return slim | _union([_bare(part, defs, depth, described) for part in node["anyOf"]])
    if kind == "array":
        slim["items"] = _bare(node.get("items", {}), defs, depth, described)
    return slim


def _object(node: dict[str, Any], defs: dict[str, Any], depth: int, described: bool) -> dict[str, Any]:
    slim: dict[str, Any] = {"type": "object"}
    if depth > 0 and "properties" in node:
        slim["properties"] = {
            name: _bare(value, defs, depth - 1, described) for name, value in node["properties"].items()
        }
    return slim


def _union(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Null joins a plain type; a union of more than one keeps its parts."""
    some = [part for part in parts if part.get("type") != "null"]
    if len(some) == 1 and isinstance(some[0].get("type"), str):
        nullable = dict(some[0])
        nullable["type"] = [nullable["type"], "null"]
        if "enum" in nullable:
            nullable["enum"] = [*nullable["enum"], None]
        return nullable
    return {"anyOf": parts}
