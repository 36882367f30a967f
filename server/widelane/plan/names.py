"""Kinds of names that must be known or must not be shown: codes of findings, secrets."""

from __future__ import annotations

from yaml.nodes import MappingNode, Node

from widelane.errors import Problem
from widelane.models.nearest import nearest
from widelane.models.plan import Pointer
from widelane.models.verdict import NEVER_ACCEPTED, FindingCode
from widelane.plan.kinds import Schema, Text
from widelane.plan.reading import Reading, named
from widelane.plan.records import ListOf

_ACCEPTABLE = tuple(code.value for code in FindingCode if code not in NEVER_ACCEPTED)
_SECRET = r"[A-Za-z_][A-Za-z0-9_]*"
_SECRETS = ListOf(Text("a name", "HF_TOKEN", _SECRET), "a list of names")


class AcceptableCode:
    """The code of a finding that can be overridden."""

    wanted = "the code of a finding"
    example = "too_wide"

    def read(self, node: Node, at: Reading, path: Pointer) -> str | None:
        """The code."""
        code = Text(self.wanted, self.example).read(node, at, path)
        if code is None or code in _ACCEPTABLE:
            return code
        if code in NEVER_ACCEPTED:
            at.report(node, "not_acceptable", f"`{code}` can't be accepted.", "Apply the fix that the finding names.")
            return None
        guess = nearest(code, _ACCEPTABLE)
        fix = f"Did you mean `{guess}`?" if guess else f"Known codes: {', '.join(_ACCEPTABLE)}."
        at.report(node, "unknown_code", f"{named(code)} is no code of a finding.", fix)
        return None

    def schema(self) -> Schema:
        """A JSON enum."""
        return {"enum": list(_ACCEPTABLE)}


class SecretNames:
    """A list of names of secrets. What is wrong with one is told without showing it: it may be the secret's value."""

    wanted = "a list of names of secrets"
    example = "[HF_TOKEN]"

    def read(self, node: Node, at: Reading, path: Pointer) -> tuple[str, ...] | None:
        """The names."""
        if isinstance(node, MappingNode):
            fix = "List the names, as in `secrets: [HF_TOKEN]`, and take the values out of the plan and its history."
            at.report(node, "secret_value", "`secrets` wants names; values never stand in a plan.", fix)
            return None
        quiet = Reading(at.sheet)
        names = _SECRETS.read(node, quiet, path)
        at.places.update(quiet.places)
        for problem in quiet.problems:
            message = "A secret is named by letters, digits and `_`; what stands here isn't shown."
            fix = "List names, as in `secrets: [HF_TOKEN]`."
            at.problems.append(Problem(problem.origin, problem.line, problem.column, "bad_secret", message, fix))
        return names

    def schema(self) -> Schema:
        """A JSON array of names."""
        return _SECRETS.schema()
