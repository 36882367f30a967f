"""The store as the controller uses it: the runner's client, with this program's errors."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from widelane.errors import ConfigError, NotFoundError, StoreError
from widelane.runner.host import store as host
from widelane.store.bucket import BucketError, CloudBucket

_HINTS = {
    errno.ENOSPC: "free some space there; everything already written is kept",
    errno.EDQUOT: "the quota there is used up",
    errno.EACCES: "check who may write there",
    errno.EROFS: "it is mounted read-only",
}


class Store:
    """A flat space of keys.

    Every method raises `NotFoundError` for a key that isn't there and `StoreError` when the store can't do it.
    """

    __slots__ = ("_client",)

    def __init__(self, client: host.Store) -> None:
        self._client = client

    @property
    def url(self) -> str:
        """The URL that opens it again, on this machine or on a host."""
        return self._client.url

    @property
    def folder(self) -> Path | None:
        """Where it is when it is a folder of this machine."""
        return self._client.root if isinstance(self._client, host.FileStore) else None

    def put(self, key: str, data: bytes, durable: bool = True) -> None:
        """Write or overwrite; with `durable` False a power cut may take it back."""
        with self._translated(key):
            self._client.put(key, data, durable)

    def put_file(self, key: str, path: Path, sha256: str = "") -> None:
        """Write or overwrite from a file; with `sha256`, only when its bytes have it."""
        with self._translated(key):
            self._client.put_file(key, path, sha256)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write unless the key is there; True when this call wrote it. The first writer wins."""
        with self._translated(key):
            return self._client.put_if_absent(key, data)

    def get(self, key: str) -> bytes:
        """The value."""
        with self._translated(key):
            return self._client.get(key)

    def get_to(self, key: str, path: Path, sha256: str = "") -> None:
        """Write the value to a file; with `sha256` check it first."""
        with self._translated(key):
            self._client.get_to(key, path, sha256)

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        with self._translated(key):
            return self._client.exists(key)

    def list(self, prefix: str) -> list[str]:
        """The keys that start with `prefix`, sorted."""
        with self._translated(prefix):
            return self._client.list(prefix)

    @contextmanager
    def _translated(self, key: str) -> Generator[None]:
        try:
            yield
        except host.StoreMissingError as error:
            raise NotFoundError(f"{key} isn't in the store {self.url}") from error
        except host.StoreUrlError as error:
            raise StoreError(str(error)) from error
        except OSError as error:
            hint = error.hint if isinstance(error, BucketError) else _HINTS.get(error.errno or 0, "")
            raise StoreError(f"{self.url}: {key}: {error.strerror or error}", hint=hint) from error


def open_store(url: str) -> Store:
    """The store at a `file://` or `gs://` URL. Raises `ConfigError` for what can't be opened."""
    try:
        return Store(CloudBucket(url) if url.startswith("gs:") else host.open_store(url))
    except host.StoreUrlError as error:
        raise ConfigError(f"store {error}", hint="a store is file:///ABSOLUTE/DIR or gs://BUCKET/PREFIX") from error


def is_at_hand(url: str) -> bool:
    """Whether a store is on this machine: a folder, or a bucket of an emulator."""
    return url.startswith("file:") or "?endpoint=" in url
