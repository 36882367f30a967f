"""Did you mean: the known word that is nearest to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

_CLOSE_ENOUGH = 0.6


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` most likely stands for, or None when none is near."""
    # Imported here because only mistakes need it, and it takes longer to import than a plan to parse.
    from rapidfuzz import process  # noqa: PLC0415 - loaded on the first mistake only
    from rapidfuzz.distance import OSA  # noqa: PLC0415 - loaded on the first mistake only

    folded = {name.lower().replace("-", "_"): name for name in known}
    found = process.extractOne(
        word[:100].lower().replace("-", "_"),
        list(folded),
        scorer=OSA.normalized_similarity,
        score_cutoff=_CLOSE_ENOUGH,
    )
    return None if found is None else folded[found[0]]
