"""A folder as a tar.gz that depends on names, contents and the executable bit, and on nothing else.

Its digest is that of the tar inside, since compressors differ between Python builds.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from widelane.errors import StoreError
from widelane.store.listing import Excludes, source_files

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


@dataclass(frozen=True, slots=True)
class Packed:
    """An archive. `listed_by` is "git" when .gitignore was honoured, else "walk"; `left_out` says what and why."""

    sha256: str
    files: int
    bytes: int
    listed_by: str
    left_out: tuple[str, ...]

    @property
    def key(self) -> str:
        """Where the store has it."""
        return f"sources/{self.sha256}.tar.gz"


def pack(folder: Path, to: Path, exclude: Iterable[str] = ()) -> Packed:
    """Write the archive of a folder to the file `to`.

    `exclude` are paths and globs relative to the folder. Links that lead out of the folder, and what is neither
    file nor link, are left out; empty folders aren't kept. Raises `StoreError`.
    """
    if not folder.is_dir():
        raise StoreError(f"source {folder} isn't a folder")
    listed_by, names = source_files(folder, Excludes(exclude))
    left_out: list[str] = []
    kept = 0
    size = 0
    with to.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
        hashing = _Hashing(packed)
        with tarfile.open(
            fileobj=hashing, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
        ) as tar:
            for name in names:
                if _absolute(folder / name) == _absolute(to):
                    continue
                added = _add(tar, folder, name)
                if isinstance(added, str):
                    left_out.append(f"{name}: {added}")
                else:
                    kept += 1
                    size += added
    return Packed(hashing.digest.hexdigest(), kept, size, listed_by, tuple(left_out))


class _Hashing(io.RawIOBase):
    """Passes bytes on and hashes them."""

    def __init__(self, target: gzip.GzipFile) -> None:
        super().__init__()
        self.digest = hashlib.sha256()
        self._target = target

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        self.digest.update(data)
        return self._target.write(data)


def _add(tar: tarfile.TarFile, folder: Path, name: str) -> int | str:
    """Size of what was added, or why it is left out."""
    path = folder / name
    info = tarfile.TarInfo(name)
    try:
        kind = path.lstat().st_mode
        if stat.S_ISLNK(kind):
            if not _stays_inside(folder, path):
                return "a link that leads out of the folder"
            info.type = tarfile.SYMTYPE
            info.linkname = os.readlink(path)  # noqa: PTH115 - a Path would tidy the text of the link
            info.mode = 0o777
            tar.addfile(info)
            return 0
        if not stat.S_ISREG(kind):
            return "neither a file nor a link"
        with path.open("rb") as source:
            found = os.fstat(source.fileno())
            info.size = found.st_size
            info.mode = 0o755 if found.st_mode & 0o100 else 0o644
            tar.addfile(info, source)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}", hint="exclude it, or keep it still") from error
    return info.size


def _stays_inside(folder: Path, link: Path) -> bool:
    """Whether a relative link ends in the folder, whether or not anything is there."""
    if Path(os.readlink(link)).is_absolute():  # noqa: PTH115 - the text, not where it leads
        return False
    try:
        return link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return False


def _absolute(path: Path) -> Path:
    return path.parent.resolve() / path.name
