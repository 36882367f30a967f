"""The cloud's memory: held in dictionaries, written through to SQLite before anything is answered."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from widelane.models.plan import ProvisioningModel
from widelane.simcloud.records import Ending, Instance, Json, Operation, Process, Status

_SCHEMA = """
CREATE TABLE IF NOT EXISTS thing (kind TEXT, key TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS request (seq INTEGER PRIMARY KEY, body TEXT NOT NULL);
"""


class State:
    """Everything that must outlive a killed server.

    Change a record, `save` it, then `commit`: one transaction, durable against the death of the process.
    """

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(_SCHEMA)
        self._dirty: dict[tuple[str, str], str | None] = {}
        self._log: list[str] = []
        self.instances = {each.key: each for each in map(_instance, self._all("instance"))}
        self.operations = {each.name: each for each in (Operation(**body) for body in self._all("operation"))}
        self.requests: dict[str, str] = self._map("requests")
        self.stock: dict[str, int] = self._map("stock")
        self.counters: dict[str, int] = self._map("counters")
        self.facts: dict[str, Any] = self._map("facts")

    def close(self) -> None:
        """Close the file; what isn't committed is lost."""
        self._db.close()

    def save(self, thing: Instance | Operation) -> None:
        """Write an instance or operation at the next commit."""
        if isinstance(thing, Instance):
            self.instances[thing.key] = thing
            self._dirty["instance", thing.key] = json.dumps(dataclasses.asdict(thing))
        else:
            self.operations[thing.name] = thing
            self._dirty["operation", thing.name] = json.dumps(dataclasses.asdict(thing))

    def remove(self, instance: Instance) -> None:
        """Forget an instance at the next commit."""
        del self.instances[instance.key]
        self._dirty["instance", instance.key] = None

    def remember_request(self, request_id: str, operation: str) -> None:
        """From now on the id answers with that operation."""
        self.requests[request_id] = operation
        self._dirty["requests", request_id] = json.dumps(operation)

    def set_stock(self, combination: str, delta: int) -> None:
        """How far stock stands from what the scenario says."""
        self.stock[combination] = delta
        self._dirty["stock", combination] = json.dumps(delta)

    def set_fact(self, key: str, value: Any) -> None:
        """A value of JSON that belongs to the whole cloud."""
        self.facts[key] = value
        self._dirty["facts", key] = json.dumps(value)

    def count(self, name: str) -> int:
        """The next number of a counter, from 1."""
        number = self.counters.get(name, 0) + 1
        self.counters[name] = number
        self._dirty["counters", name] = json.dumps(number)
        return number

    def log(self, entry: Json) -> None:
        """Add a line to the request log."""
        self._log.append(json.dumps(entry))

    def requests_since(self, seq: int) -> list[Json]:
        """Committed lines of the request log after `seq`, oldest first, each with its `seq`."""
        rows = self._db.execute("SELECT seq, body FROM request WHERE seq > ? ORDER BY seq", (seq,))
        return [{"seq": number, **cast("Json", json.loads(body))} for number, body in rows]

    def commit(self) -> None:
        """Write what changed; returns once it survives a kill of this process."""
        if not self._dirty and not self._log:
            return
        gone = [key for key, body in self._dirty.items() if body is None]
        kept = [(*key, body) for key, body in self._dirty.items() if body is not None]
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("DELETE FROM thing WHERE kind = ? AND key = ?", gone)
        self._db.executemany("INSERT OR REPLACE INTO thing (kind, key, body) VALUES (?, ?, ?)", kept)
        self._db.executemany("INSERT INTO request (body) VALUES (?)", [(line,) for line in self._log])
        self._db.execute("COMMIT")
        self._dirty.clear()
        self._log.clear()

    def _all(self, kind: str) -> Iterator[Json]:
        for (body,) in self._db.execute("SELECT body FROM thing WHERE kind = ?", (kind,)):
            yield json.loads(body)

    def _map(self, kind: str) -> dict[str, Any]:
        rows = self._db.execute("SELECT key, body FROM thing WHERE kind = ?", (kind,))
        return {key: json.loads(body) for key, body in rows}


def _instance(body: Json) -> Instance:
    fields: Json = {**body, "model": ProvisioningModel(body["model"]), "status": Status(body["status"])}
    if fields["ending"] is not None:
        fields["ending"] = Ending(fields["ending"])
    if fields["process"] is not None:
        fields["process"] = Process(**fields["process"])
    return Instance(**fields)
