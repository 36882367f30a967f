"""`.claude/` and the marked part of CLAUDE.md: written from the tables, checked for values that drifted.

Every value stands in a code span. A file is right when its code spans that look like values (numbers, machine types,
lanes and other words of the tables) are those of its rendering, in order; its wording and other code spans are free.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from widelane.errors import InputError
from widelane.models.plan import ProvisioningModel
from widelane.prompts import critic, planner
from widelane.prompts.source import Rendered, pick, render, source
from widelane.prompts.values import values

if TYPE_CHECKING:
    from widelane.facts import Catalog, Policy

BEGIN = "<!-- widelane:begin compute-backends -->"
END = "<!-- widelane:end compute-backends -->"
_SECTION = "CLAUDE.md"
_SPAN = re.compile(r"`([^`\n]+)`")
_VALUE = re.compile(r"\d[\d.]*(?: (?:%|h|min|s))?|[a-z]\d[a-z]?-[a-z]+-\d+g?")
"""A number with its unit, or a machine type."""
_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Drift:
    """One place where a file and the tables differ; `expected` or `found` is empty when only the other has something.

    `name` is the value's; for a span too many, that of the value before it.
    """

    file: str
    line: int
    name: str
    expected: str
    found: str

    def __str__(self) -> str:
        if not self.expected:
            return f"{self.file}:{self.line}: {self.name}: `{self.found}` is no value of the tables in this place"
        stands = f"found `{self.found}`" if self.found else "not found"
        return f"{self.file}:{self.line}: {self.name}: expected `{self.expected}`, {stands}"


def write(root: Path, catalog: Catalog, policy: Policy) -> list[Path]:
    """Render every surface under `root`; answers the files that changed. Text around the marked part is kept.

    Raises:
        InputError: CLAUDE.md has one marker without the other.
    """
    changed: list[Path] = []
    for name, rendered in pages(catalog, policy):
        file = root / name
        before = file.read_text(encoding="utf-8") if file.is_file() else ""
        after = _with_section(before, rendered.text) if name == _SECTION else rendered.text
        if after != before or not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(after, encoding="utf-8")
            changed.append(file)
    return changed


def check(root: Path, catalog: Catalog, policy: Policy) -> list[Drift]:
    """Values under `root` that aren't those of the tables. Writes nothing."""
    drifts: list[Drift] = []
    rendered_pages = dict(pages(catalog, policy))
    words = _words(rendered_pages.values(), catalog, policy)
    for name, rendered in rendered_pages.items():
        file = root / name
        if not file.is_file():
            drifts.append(Drift(name, 1, "file", name, ""))
            continue
        text, first = file.read_text(encoding="utf-8"), 1
        if name == _SECTION:
            text, first = _section(text)
        drifts += _compare(name, rendered, text, first, words)
    return drifts


def pages(catalog: Catalog, policy: Policy) -> Iterator[tuple[str, Rendered]]:
    """Every surface as it is to be: its path from the root, its text, its values."""
    known = values(catalog, policy)
    yield ".claude/agents/planner.md", _agent("agent-planner", planner.rendered(catalog, policy))
    yield ".claude/agents/efficiency-critic.md", _agent("agent-efficiency-critic", critic.rendered(catalog, policy))
    for name, page in ((".claude/rules/compute-backend-failover.md", "failover"), (_SECTION, "backends")):
        body = source(page)
        yield name, render(body, pick(body, known))


def _agent(head: str, page: Rendered) -> Rendered:
    return render(source(head), {"page": page})


def _with_section(before: str, text: str) -> str:
    part = f"{BEGIN}\n{text.strip()}\n{END}"
    start, end = _markers(before)
    if start < 0:
        return f"{before.rstrip()}\n\n{part}\n" if before.strip() else f"{part}\n"
    return before[:start] + part + before[end + len(END) :]


def _markers(text: str) -> tuple[int, int]:
    start, end = text.find(BEGIN), text.find(END)
    if (start < 0) != (end < 0) or end < start:
        raise InputError(
            f"{_SECTION}: the markers of the compute-backends part don't pair", hint=f"restore {BEGIN} ... {END}"
        )
    return start, end


def _section(text: str) -> tuple[str, int]:
    """The marked part and the line where it starts; empty without markers."""
    start, end = _markers(text)
    if start < 0:
        return "", 1
    return text[start:end], text.count("\n", 0, start) + 1


def _words(rendered: Iterable[Rendered], catalog: Catalog, policy: Policy) -> frozenset[str]:
    """Spans that are values wherever they stand."""
    used = (span for page in rendered for _, value in page.values for span in _SPAN.findall(value))
    return frozenset((*used, *catalog.machine_types, *policy.lane_order, *ProvisioningModel))


def _compare(file: str, page: Rendered, text: str, first: int, words: frozenset[str]) -> Iterator[Drift]:
    wanted = [(name, span) for name, value in page.values for span in _SPAN.findall(value)]
    # Fenced examples hold no values; blanking them keeps the line numbers.
    plain = _FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    stand = [
        (match[1], plain.count("\n", 0, match.start()) + first)
        for match in _SPAN.finditer(plain)
        if match[1] in words or _VALUE.fullmatch(match[1])
    ]
    for place, expected, found in _differences([span for _, span in wanted], [span for span, _ in stand]):
        name = wanted[min(place.wanted, len(wanted) - 1)][0] if expected else wanted[max(place.wanted - 1, 0)][0]
        line = stand[min(place.stand, len(stand) - 1)][1] if stand else first
        yield Drift(file, line, name, expected, found)


class _Place(NamedTuple):
    wanted: int
    stand: int


def _differences(wanted: list[str], stand: list[str]) -> Iterator[tuple[_Place, str, str]]:
    """(where, expected, found). With nothing added or lost, place by place, so that what was swapped is named twice."""
    if len(wanted) == len(stand):
        for place, (expected, found) in enumerate(zip(wanted, stand, strict=True)):
            if expected != found:
                yield _Place(place, place), expected, found
        return
    for kind, i, k, j, m in SequenceMatcher(None, wanted, stand, autojunk=False).get_opcodes():
        if kind != "equal":
            rows = zip_longest(range(i, k), range(j, m))
            for row, (left, right) in enumerate(rows):
                expected, found = ("" if left is None else wanted[left]), ("" if right is None else stand[right])
                yield _Place(i + row if expected else k, j + row), expected, found
