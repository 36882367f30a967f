"""The store client: a flat space of keys, written atomically, some of them first-writer-wins.

Every method raises `StoreMissingError` for a key that isn't there and another `OSError` when the store can't do it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable, Generator
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

CHUNK = 1 << 20
_TEMP = ".tmp-"


class StoreMissingError(FileNotFoundError):
    """No such key."""


class StoreUrlError(ValueError):
    """A store URL or a key that can't be used."""


class CorruptError(OSError):
    """What was read isn't what its name says."""


class Store(Protocol):
    """Keys are relative slash-separated paths; values are bytes."""

    @property
    def url(self) -> str:
        """The URL that opens it again."""
        ...

    def put(self, key: str, data: bytes, durable: bool = True) -> None:
        """Write or overwrite; readers see the old or the new value, never a part.

        With `durable` False a power cut may take it back: for news and logs.
        """
        ...

    def put_file(self, key: str, path: Path, sha256: str = "") -> None:
        """Like `put` from a file; with `sha256` raise `CorruptError` when the bytes copied don't have it."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write durably unless the key is there; True when this call wrote it."""
        ...

    def get(self, key: str) -> bytes:
        """The value."""
        ...

    def get_to(self, key: str, path: Path, sha256: str = "") -> None:
        """Write the value to a file, in place of what is there; with `sha256` check it first."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        ...

    def list(self, prefix: str) -> list[str]:
        """The keys that start with `prefix`, sorted."""
        ...


def open_store(url: str) -> Store:
    """The store at `file:///abs/dir` or `gs://bucket/prefix`. Raises `StoreUrlError` for another scheme."""
    parts = urlsplit(url)
    if parts.scheme == "gs":
        from .bucket import BucketStore  # noqa: PLC0415 - work with folders starts without urllib

        return BucketStore(url)
    if parts.scheme != "file":
        known = "file:///DIR and gs://BUCKET work"
        raise StoreUrlError(f"{url!r}: no client for {parts.scheme or 'a URL without scheme'!r}; {known}")
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise StoreUrlError(f"{url!r}: a file store is file:///ABSOLUTE/DIR")
    if parts.query or parts.fragment:
        raise StoreUrlError(f"{url!r}: write ? and # in a folder name as %3F and %23")
    return FileStore(Path(unquote(parts.path)))


def file_url(folder: Path) -> str:
    """The URL of a folder as a store."""
    return folder.absolute().as_uri()


def check_key(key: str) -> str:
    """The key itself. Raises `StoreUrlError` when it could leave the store or hide in it."""
    parts = key.split("/")
    if any(part in ("", ".", "..") or part.startswith(_TEMP) for part in parts) or "\0" in key:
        raise StoreUrlError(f"not a store key: {key!r}")
    return key


class FileStore:
    """A folder as a store."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def url(self) -> str:
        """The URL that opens it again."""
        return file_url(self.root)

    def put(self, key: str, data: bytes, durable: bool = True) -> None:
        """Write or overwrite."""
        with self._writing(key, lambda temp: temp.write(data), durable) as (temp, final):
            temp.replace(final)

    def put_file(self, key: str, path: Path, sha256: str = "") -> None:
        """Copy a file in, durably; nothing is written when its bytes don't have the given digest."""

        def fill(temp: BinaryIO) -> None:
            with path.open("rb") as source:
                found = copy(source, temp)
            if sha256 and found != sha256:
                raise CorruptError(errno.EIO, "changed while it was copied", str(path))

        with self._writing(key, fill) as (temp, final):
            temp.replace(final)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """First writer wins; a link makes the name appear with its whole content or not at all."""
        if self.exists(key):
            return False
        with self._writing(key, lambda temp: temp.write(data)) as (temp, final):
            try:
                self._link(temp, final)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                    raise
                return self._rename_if_absent(temp, final)
            return True

    def get(self, key: str) -> bytes:
        """The value."""
        with self._reading(key) as source:
            return source.read()

    def get_to(self, key: str, path: Path, sha256: str = "") -> None:
        """Write the value beside `path`, check it, and rename it there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temp = path.parent / _temp_name()
        try:
            with self._reading(key) as source, temp.open("xb") as target:
                found = copy(source, target)
            if sha256 and found != sha256:
                raise CorruptError(errno.EIO, f"content has sha256 {found}, not {sha256}", key)
            temp.replace(path)
        finally:
            temp.unlink(missing_ok=True)

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        return (self.root / check_key(key)).is_file()

    def list(self, prefix: str) -> list[str]:
        """The keys that start with `prefix`, sorted; writes under way aren't listed."""
        folder = self.root / prefix.rpartition("/")[0]
        found: list[str] = []
        for base, _, names in os.walk(folder):
            inside = Path(base).relative_to(self.root)
            found.extend((inside / name).as_posix() for name in names if not name.startswith((_TEMP, ".lock")))
        return sorted(key for key in found if key.startswith(prefix))

    @contextlib.contextmanager
    def _reading(self, key: str) -> Generator[BinaryIO, None, None]:
        path = self.root / check_key(key)
        try:
            source = path.open("rb")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise StoreMissingError(errno.ENOENT, "not in the store", key) from error
        with source:
            yield source

    @contextlib.contextmanager
    def _writing(
        self, key: str, fill: Callable[[BinaryIO], object], durable: bool = True
    ) -> Generator[tuple[Path, Path], None, None]:
        """A filled temporary file beside the final name; file and folder are synced when it must be durable."""
        final = self.root / check_key(key)
        final.parent.mkdir(parents=True, exist_ok=True)
        temp = final.parent / _temp_name()
        try:
            with temp.open("xb") as target:
                fill(target)
                if durable:
                    target.flush()
                    os.fsync(target.fileno())
            yield temp, final
            if durable:
                sync_folder(final.parent)
        finally:
            temp.unlink(missing_ok=True)

    def _link(self, temp: Path, final: Path) -> None:
        os.link(temp, final)

    def _rename_if_absent(self, temp: Path, final: Path) -> bool:
        """For file systems without hard links: every writer of this store takes the same lock."""
        with (self.root / ".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if final.exists():
                return False
            temp.replace(final)
            return True


class Source(Protocol):
    """Anything to read bytes from."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""
        ...


def copy(source: Source, target: BinaryIO | None) -> str:
    """Copy to the end (or only read, without a target) and return the SHA-256 of what passed."""
    digest = hashlib.sha256()
    while True:
        chunk = source.read(CHUNK)
        if not chunk:
            return digest.hexdigest()
        digest.update(chunk)
        if target is not None:
            target.write(chunk)


def sync_folder(folder: Path) -> None:
    """Make names in a folder survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _temp_name() -> str:
    return f"{_TEMP}{os.getpid()}-{secrets.token_hex(6)}"
