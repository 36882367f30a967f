"""`${name}` inside flow collections, where YAML would take the brace for a mapping's: `args: {seed: ${seed}}`.

Before libyaml reads the text, the signs of each placeholder are replaced one by one by signs that mean nothing to it;
in the nodes they are put back. Lines and columns stay as they are.
"""

from __future__ import annotations

import re
from typing import cast

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from widelane.plan.compose import compose
from widelane.plan.sheet import Sheet

_SLOT = re.compile(r"\$\{([^{}\n\"'#,\[\]]*)\}")
_SIGNS = str.maketrans({"\ue0f0": "$", "\ue0f1": "{", "\ue0f2": "}"})


def composed(sheet: Sheet) -> Node | None:
    """The root node of a manifest's text. Raises PlanError for what isn't one YAML document."""
    text = sheet.text
    if "${" not in text or "\ue0f0" in text:
        return compose(sheet)
    masked = _SLOT.sub("\ue0f0\ue0f1\\1\ue0f2", text)
    root = compose(Sheet(masked, sheet.origin, sheet.skipped, sheet.cuts))
    if root is not None:
        _unmask(root)
    return root


def _unmask(root: Node) -> None:
    stack, seen = [root], {id(root)}
    while stack:
        node = stack.pop()
        if isinstance(node, ScalarNode):
            value = cast("str", node.value)
            if "\ue0f0" in value:
                node.value = value.translate(_SIGNS)
            continue
        for child in _children(node):
            if id(child) not in seen:
                seen.add(id(child))
                stack.append(child)


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [child for pair in cast("list[tuple[Node, Node]]", node.value) for child in pair]
    return cast("list[Node]", node.value) if isinstance(node, SequenceNode) else []
