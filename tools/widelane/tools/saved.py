"""Reads answers about quotas that were saved in files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from widelane import router
from widelane.errors import InputError
from widelane.models.quota import QuotaSnapshot

_LARGEST = 8 * 1024 * 1024


def read_answers(paths: list[Path]) -> QuotaSnapshot:
    """One snapshot of all files, as old as the oldest of them.

    Raises:
        InputError: a file that can't be read, or holds no answer about quotas.
    """
    documents = [(str(path), _json(path)) for path in paths]
    oldest = min(path.stat().st_mtime for path in paths)
    return router.saved_quotas(documents, datetime.fromtimestamp(oldest, UTC).isoformat())


def _json(path: Path) -> Any:
    try:
        with path.open("rb") as stream:
            data = stream.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise InputError(f"{path} is too large for an answer about quotas")
        return json.loads(data)
    except OSError as error:
        raise InputError(f"{path} can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not JSON: {str(error)[:200]}", hint="add --format=json to the gcloud command"
        ) from error
