"""Hostile archives are refused, and nothing is written outside."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from widelane.runner.host.unpack import ArchiveError, unpack


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b"x"
) -> Callable[[tarfile.TarFile], None]:
    def add(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.type = kind
        info.linkname = link
        info.mode = 0o7777
        info.size = len(data) if kind == tarfile.REGTYPE else 0
        tar.addfile(info, io.BytesIO(data))

    return add


def archive(folder: Path, *entries: Callable[[tarfile.TarFile], None]) -> Path:
    path = folder / "a.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for add in entries:
            add(tar)
    return path


SYM, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE


@pytest.mark.parametrize(
    "entries",
    [
        [entry("/abs")],
        [entry("../up")],
        [entry("a/../../up")],
        [entry("")],
        [entry("dev", tarfile.CHRTYPE)],
        [entry("dev", tarfile.BLKTYPE)],
        [entry("fifo", tarfile.FIFOTYPE)],
        [entry("a"), entry("b", HARD, "a")],
        [entry("link", SYM, "/etc")],
        [entry("link", SYM, "..")],
        [entry("link", SYM, ".."), entry("link/x")],
        [entry("d/link", SYM, "../.."), entry("x")],
        [entry("a/b/s", SYM, ".."), entry("t", SYM, "a/b/s/../..")],
        [entry("loop", SYM, "loop2"), entry("loop2", SYM, "loop")],
        [entry("twice"), entry("twice")],
        [entry("file"), entry("file/below")],
    ],
)
def test_an_archive_that_would_leave_its_folder_is_refused(
    tmp_path: Path, entries: list[Callable[[tarfile.TarFile], None]]
) -> None:
    into = tmp_path / "deep" / "into"
    into.parent.mkdir()
    with pytest.raises((ArchiveError, OSError)):
        unpack(archive(tmp_path, *entries), into)
    outside = {path for path in tmp_path.rglob("*") if into not in path.parents and path != into}
    assert {path.name for path in outside} == {"a.tar.gz", "deep"}


def test_links_that_stay_inside_are_kept_and_special_mode_bits_are_not(tmp_path: Path) -> None:
    into = tmp_path / "into"
    unpack(
        archive(tmp_path, entry("l", SYM, "d/f"), entry("d/f"), entry("d/up", SYM, "../l"), entry("gone", SYM, "no")),
        into,
    )
    assert (into / "l").read_text() == "x"
    assert (into / "d/up").read_text() == "x"
    assert (into / "gone").is_symlink()
    assert (into / "d/f").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("cut", [5, 40, -10])
def test_a_damaged_archive_is_refused(tmp_path: Path, cut: int) -> None:
    path = archive(tmp_path, entry("a", data=bytes(range(256)) * 40))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ArchiveError):
        unpack(path, tmp_path / "into", "0" * 64)


def test_content_that_is_no_tar_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    with gzip.open(path, "wb") as out:
        out.write(b"text" * 1000)
    with pytest.raises(ArchiveError):
        unpack(path, tmp_path / "into")
