"""YAML text to nodes with marks, by libyaml; no scalar is interpreted here."""

from __future__ import annotations

from typing import cast

from yaml import MarkedYAMLError, YAMLError
from yaml._yaml import CParser
from yaml.nodes import MappingNode, Node, SequenceNode

from widelane.errors import PlanError, Problem
from widelane.plan.sheet import Sheet

IMPLICIT = "implicit"
"""The tag of every node whose tag isn't written out."""

DEPTH_LIMIT = 32
NODE_LIMIT = 1_000_000

_FIXES = (
    ("mapping values are not allowed", "Quote a text that holds `: `, or check the indentation of this line."),
    ("scanning an alias", "Quote a text that begins with `*`."),
    ("undefined alias", "Quote a text that begins with `*`."),
    ("cannot start any token", "Indent with spaces, not tabs; quote a text that begins with @, ` or %."),
    ("did not find expected ',' or", "Close the bracket; quote a text that holds brackets, braces or commas."),
    ("did not find expected key", "Check the indentation and the quotes of this line and the one before."),
    ("did not find expected '-'", "Keep the items of a list at one indentation, each with `- `."),
    ("could not find expected ':'", "Write `key: value`; check the indentation of this line and the one before."),
    ("unexpected end of stream", "Close the quote."),
    ("invalid Unicode character escape", "Write the character itself instead of its escape."),
    ("unknown escape character", "Use single quotes, in which a backslash is an ordinary character."),
    ("another document", "Keep one document; remove the line `---`."),
    ("scanning an anchor", "Quote a text that begins with `&`."),
    ("duplicate anchor", "Give each anchor (`&name`) a name of its own."),
    ("block sequence entries are not allowed", "Put the first item of the list on a line of its own."),
)


class _TooDeepError(Exception):
    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node


class _Composer(CParser):
    """libyaml's composer with its scalar rules (YAML 1.1's) switched off and its depth bounded."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def resolve(self, kind: type[Node], value: str | None, implicit: object) -> str:
        """Called by libyaml's composer for every node without a written tag."""
        return IMPLICIT

    def descend_resolver(self, parent: Node | None, index: object) -> None:
        """Called before a child is composed."""
        self._depth += 1
        if self._depth > DEPTH_LIMIT and parent is not None:
            raise _TooDeepError(parent)

    def ascend_resolver(self) -> None:
        """Called after a child was composed."""
        self._depth -= 1


def compose(sheet: Sheet) -> Node | None:
    """The root node, or None for an empty text. Raises PlanError for what isn't one YAML document."""
    sheet.check_characters()
    try:
        root = _Composer(sheet.text).get_single_node()
    except MarkedYAMLError as error:
        raise PlanError((_syntax_problem(sheet, error),)) from None
    except YAMLError as error:
        raise PlanError((sheet.problem(0, 0, "bad_yaml", f"This isn't YAML: {error}."),)) from None
    except _TooDeepError as error:
        start = error.node.start_mark
        message = f"Nested deeper than {DEPTH_LIMIT} levels."
        raise PlanError((sheet.problem(start.line, start.column, "too_deep", message, "No key needs it."),)) from None
    if root is not None and "&" in sheet.text and "*" in sheet.text:
        _check_aliases(sheet, root)
    return root


def _syntax_problem(sheet: Sheet, error: MarkedYAMLError) -> Problem:
    words = f"{error.context or ''} {error.problem or ''}"
    # A quote that never closes, and a `*` that begins no alias, stand where the scanner began, not where it gave up.
    began = any(part in words for part in ("end of stream", "scanning an alias", "scanning an anchor"))
    mark = (error.context_mark if began else None) or error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    context = ""
    if "did not find expected" in words and not began and error.context_mark is not None:
        context = f" in what opens in line {sheet.place(error.context_mark.line, 0)[0]}"
    fix = next((fix for part, fix in _FIXES if part in words), "Check the indentation and quotes around this place.")
    return sheet.problem(line, column, "bad_yaml", f"This isn't YAML: {error.problem}{context}.", fix)


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [child for pair in cast("list[tuple[Node, Node]]", node.value) for child in pair]
    return cast("list[Node]", node.value) if isinstance(node, SequenceNode) else []


def _check_aliases(sheet: Sheet, root: Node) -> None:
    """Raises PlanError when aliases form a loop, or stand for more nodes than any plan has."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size(node: Node) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in open_nodes:
            raise PlanError((_alias_problem(sheet, node, "An alias inside the value that it stands for."),))
        open_nodes.add(id(node))
        total = 1 + sum(size(child) for child in _children(node))
        open_nodes.discard(id(node))
        if total > NODE_LIMIT and total > 2 * len(sizes):
            raise PlanError((_alias_problem(sheet, node, f"With its aliases this has over {NODE_LIMIT:,} values."),))
        sizes[id(node)] = total
        return total

    size(root)


def _alias_problem(sheet: Sheet, node: Node, message: str) -> Problem:
    start = node.start_mark
    return sheet.problem(start.line, start.column, "alias_bomb", message, "Write the values out.")
