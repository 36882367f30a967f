"""Two marks in the store that stand in for the request id that RunPod doesn't have.

leases/LEASE/sent.json    written before the one create of an attempt: nobody sends another
leases/LEASE/claim.json   the first pod to write it does the work; a controller that gives a create up as lost
                          writes it with no pod, and a pod that comes late finds it taken and deletes itself
"""

from __future__ import annotations

import json
from datetime import datetime

from widelane.errors import LaneUnknownError
from widelane.lanes.protocol import Launch
from widelane.store import Store


def mark_sent(store: Store, launch: Launch, now: datetime) -> datetime | None:
    """Take the right to send the create. None: it is ours. Else when somebody took it before."""
    key = f"leases/{launch.attempt_id}/sent.json"
    if store.put_if_absent(key, json.dumps({"at": now.isoformat()}).encode()):
        return None
    return datetime.fromisoformat(_read(store, key, "at"))


def withdraw(store: Store, launch: Launch) -> bool:
    """See to it that no pod ever works for this attempt; False when one does already."""
    key = f"leases/{launch.attempt_id}/claim.json"
    return store.put_if_absent(key, json.dumps({"pod": ""}).encode()) or not _read(store, key, "pod")


def _read(store: Store, key: str, name: str) -> str:
    data = store.get(key)
    try:
        return str(json.loads(data)[name])
    except (ValueError, KeyError, TypeError) as error:
        raise LaneUnknownError("runpod", f"{key} in the store can't be read: {data[:100]!r}") from error
