"""The environment contract: a spec's hash and the line that a kernel run printed, kept by provider."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Optional

from ..attempt import read_record, write_record

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def digest(spec: Any) -> str:
    """The first 8 hex digits of the SHA-256 of a spec's canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def ledger(root: Path, provider: str) -> Path:
    """Where a provider's block is. Raises ValueError for a name that can't be one."""
    if not _NAME.fullmatch(provider):
        raise ValueError(f"{provider!r} isn't a provider's name: {_NAME.pattern}")
    return root / "env" / f"{provider}.json"


def record(root: Path, provider: str, block: dict[str, Any]) -> None:
    """Keep a block, with those before it. It has `hash` and `witness`. Raises OSError, ValueError."""
    path = ledger(root, provider)
    path.parent.mkdir(parents=True, exist_ok=True)
    known = (read_record(path) or {}).get("blocks", [])
    write_record(path, {"provider": provider, "blocks": [*known, block]})


def recorded(root: Path, provider: str) -> Optional[dict[str, Any]]:
    """The newest block of a provider; None where there is none. Raises ValueError."""
    blocks = (read_record(ledger(root, provider)) or {}).get("blocks", [])
    return blocks[-1] if blocks else None


def lacks(root: Path, provider: str, wanted: str) -> str:
    """Why an environment isn't proved to be the wanted one; "" when it is."""
    try:
        block = recorded(root, provider)
    except (OSError, ValueError) as error:
        return str(error)
    if block is None:
        return f"no environment of {provider} is recorded; run `widelane env record {provider} SPEC`"
    if block.get("hash") != wanted:
        return f"the environment recorded for {provider} is {block.get('hash')}, not {wanted}"
    return "" if block.get("witness") else f"the environment of {provider} has no witness line"
