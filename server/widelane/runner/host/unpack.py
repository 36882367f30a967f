"""Opens a source archive without trusting it: only folders, files and links that stay inside."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO

from .store import copy


class ArchiveError(ValueError):
    """An archive that is damaged, or would write outside its folder."""


def unpack(archive: Path, into: Path, sha256: str = "") -> None:
    """Unpack a tar or tar.gz into an empty folder; `sha256` is that of the tar inside a tar.gz.

    Raises `ArchiveError`.
    """
    try:
        if sha256:
            with gzip.open(archive, "rb") as stream:
                if copy(stream, None) != sha256:
                    raise ArchiveError(f"{archive.name}: the tar inside doesn't have sha256 {sha256}")
        with tarfile.open(archive, "r:*") as tar:
            _unpack(tar, into)
    except (tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise ArchiveError(f"{archive.name}: {error}") from error


def _unpack(tar: tarfile.TarFile, into: Path) -> None:
    """Links come last, so nothing is ever written through one."""
    links: list[tuple[Path, str]] = []
    into.mkdir(parents=True, exist_ok=True)
    for member in tar:
        target = into / _inside(member.name)
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True)
        elif member.isreg():
            source = tar.extractfile(member)
            if source is not None:
                _write(source, target, 0o755 if member.mode & 0o100 else 0o644)
        elif member.issym():
            links.append((target, member.linkname))
        else:
            raise ArchiveError(f"{member.name!r} is neither a file nor a folder nor a symbolic link")
    for target, linkname in links:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(linkname)
    root = into.resolve()
    for target, linkname in links:
        if root not in (resolve(target), *resolve(target).parents):
            raise ArchiveError(f"{target.relative_to(into)} links outside, to {linkname!r}")


def resolve(path: Path) -> Path:
    """The path without links. Raises `ArchiveError` for links in a circle."""
    try:
        return path.resolve()
    except (RuntimeError, OSError) as error:
        raise ArchiveError(f"{path.name!r} links in a circle") from error


def _inside(name: str) -> PurePosixPath:
    pure = PurePosixPath(name)
    if not name or pure.is_absolute() or ".." in pure.parts or "\0" in name:
        raise ArchiveError(f"{name!r} isn't a path below the folder")
    return pure


def _write(source: IO[bytes], target: Path, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(fd, "wb") as out:
        shutil.copyfileobj(source, out, 1 << 20)
        os.fchmod(out.fileno(), mode)
