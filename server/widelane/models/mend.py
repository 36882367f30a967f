"""A change to the text of a plan that a finding makes plain."""

from __future__ import annotations

from dataclasses import dataclass

from widelane.models.plan import Pointer


@dataclass(frozen=True, slots=True)
class Mend:
    """A change to the text of one key. `value` None takes the key out.

    With `word`, only that part of the key's text is replaced, wherever it stands in it.
    """

    path: Pointer
    value: str | None
    word: str = ""
