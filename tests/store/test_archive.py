"""Packing: the same archive from the same names, contents and executable bits, and never more than the source."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from widelane.errors import StoreError
from widelane.runner.host.unpack import unpack
from widelane.store import open_store, pack, publish_source
from widelane.store.listing import Excludes


def tree(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def names(archive: Path) -> list[str]:
    with tarfile.open(archive) as tar:
        return tar.getnames()


PART = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=8).filter(
    lambda part: part not in (".", "..", ".git", ".venv", "__pycache__")
)
FILES = st.dictionaries(
    st.lists(PART, min_size=1, max_size=3).map("/".join), st.tuples(st.binary(max_size=50), st.booleans())
)


def _lay(folder: Path, files: list[tuple[str, tuple[bytes, bool]]], seconds: int, mask: int) -> None:
    before = os.umask(mask)
    try:
        for name, (data, executable) in files:
            path = folder / name
            if any((folder / parent).is_file() for parent in Path(name).parents) or path.is_dir():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod((0o700 if executable else 0o600) | (0o777 if executable else 0o666) & ~mask)
            os.utime(path, (seconds, seconds))
    finally:
        os.umask(before)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(files=FILES, seed=st.integers())
def test_the_archive_does_not_depend_on_times_order_or_umask(files: dict[str, tuple[bytes, bool]], seed: int) -> None:
    ordered = [
        item
        for item in files.items()
        if not any(other != item[0] and item[0].startswith(other + "/") for other in files)
    ]
    shuffled = list(ordered)
    random.Random(seed).shuffle(shuffled)
    with tempfile.TemporaryDirectory() as base:
        for name, items, seconds, mask in (("a", ordered, 1, 0o022), ("b", shuffled, 2**31, 0o077)):
            (Path(base) / name).mkdir()
            _lay(Path(base) / name, items, seconds, mask)
        first = pack(Path(base) / "a", Path(base) / "a.tar.gz")
        second = pack(Path(base) / "b", Path(base) / "b.tar.gz")
        assert first == second
        assert (Path(base) / "a.tar.gz").read_bytes() == (Path(base) / "b.tar.gz").read_bytes()
        unpack(Path(base) / "a.tar.gz", Path(base) / "out", first.sha256)
        for name, (data, executable) in ordered:
            path = Path(base) / "out" / name
            assert path.read_bytes() == data
            assert path.stat().st_mode & 0o777 == (0o755 if executable else 0o644)


def test_another_content_name_or_executable_bit_is_another_archive(tmp_path: Path) -> None:
    source = tree(tmp_path / "s", "a", "b")
    seen = {pack(source, tmp_path / "1").sha256}
    (source / "a").write_text("other")
    seen.add(pack(source, tmp_path / "1").sha256)
    (source / "a").chmod(0o755)
    seen.add(pack(source, tmp_path / "1").sha256)
    (source / "a").rename(source / "c")
    seen.add(pack(source, tmp_path / "1").sha256)
    assert len(seen) == 4


def test_the_digest_is_one_that_does_not_change_between_versions(tmp_path: Path) -> None:
    packed = pack(tree(tmp_path / "s", "a/b", "c"), tmp_path / "1")
    assert packed.sha256 == "d3e2abffa299becf86079e6b41b92981be54b273923bbdbca6515b849473f9c9"
    assert (packed.files, packed.bytes, packed.listed_by, packed.left_out) == (2, 4, "walk", ())
    assert packed.key == f"sources/{packed.sha256}.tar.gz"


def test_plan_outputs_and_rubbish_are_left_out(tmp_path: Path) -> None:
    source = tree(
        tmp_path / "s",
        "plan.md",
        "run.py",
        "out/0/1.json",
        "out/keep.txt",
        "lib/__pycache__/x.pyc",
        ".venv/bin/python",
        "lib/.git/config",
        "results/a/b",
        "plan[1].md",
    )
    pack(source, tmp_path / "1", ["plan.md", "out/*/*.json", "results", "plan[1].md"])
    assert names(tmp_path / "1") == ["out/keep.txt", "run.py"]


def test_links_that_stay_inside_are_kept_and_others_are_named(tmp_path: Path) -> None:
    source = tree(tmp_path / "s", "d/a")
    for name, target in {"in": "d/a", "d/up": "../d", "gone": "nothing", "out": "../x", "abs": "/etc/passwd"}.items():
        (source / name).symlink_to(target)
    (source / "loop").symlink_to("loop")
    os.mkfifo(source / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "sock"))
    packed = pack(source, tmp_path / "1")
    assert names(tmp_path / "1") == ["d/a", "d/up", "gone", "in"]
    assert [line.partition(":")[0] for line in packed.left_out] == ["abs", "fifo", "loop", "out", "sock"]
    unpack(tmp_path / "1", tmp_path / "out", packed.sha256)
    assert (tmp_path / "out" / "in").read_text() == "d/a"


def test_names_that_are_not_text_go_through(tmp_path: Path) -> None:
    source = tmp_path / "s"
    source.mkdir()
    (source / os.fsdecode(b"\xff\xfe")).write_text("x")
    packed = pack(source, tmp_path / "1")
    unpack(tmp_path / "1", tmp_path / "out", packed.sha256)
    assert [os.fsencode(path.name) for path in (tmp_path / "out").iterdir()] == [b"\xff\xfe"]


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_in_a_git_checkout_ignored_files_are_left_out(tmp_path: Path) -> None:
    source = tree(tmp_path / "s", "a.py", "new.py", "data/big.bin", "gone.py", "sp ace/\u00e9.py")
    (source / ".gitignore").write_text("data/\n")
    git(source, "init", "-q")
    git(source, "add", "a.py", "gone.py", ".gitignore")
    (source / "gone.py").unlink()
    nested = tree(source / "sub", "inner.py")
    git(nested, "init", "-q")
    packed = pack(source, tmp_path / "1", ["new.py"])
    assert packed.listed_by == "git"
    assert names(tmp_path / "1") == [".gitignore", "a.py", "sp ace/\u00e9.py", "sub/inner.py"]


def test_the_same_files_give_the_same_archive_with_and_without_git(tmp_path: Path) -> None:
    plain = pack(tree(tmp_path / "p", "a", "b/c"), tmp_path / "1")
    source = tree(tmp_path / "g", "a", "b/c")
    git(source, "init", "-q")
    assert pack(source, tmp_path / "2").sha256 == plain.sha256


def test_a_checkout_that_git_refuses_is_an_error_and_not_a_bigger_archive(tmp_path: Path) -> None:
    source = tree(tmp_path / "s", "a")
    (source / ".git").write_text("gitdir: nowhere")
    with pytest.raises(StoreError, match="git ls-files"):
        pack(source, tmp_path / "1")


def test_a_checkout_cannot_make_packing_run_a_program(tmp_path: Path) -> None:
    source = tree(tmp_path / "s", "a")
    git(source, "init", "-q")
    git(source, "config", "core.fsmonitor", f"touch {tmp_path}/ran; false")
    pack(source, tmp_path / "1")
    assert not (tmp_path / "ran").exists()


def test_a_source_that_is_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="isn't a folder"):
        pack(tmp_path / "none", tmp_path / "1")


def test_the_archive_does_not_hold_itself_or_the_store(tmp_path: Path) -> None:
    source = tree(tmp_path, "a")
    assert pack(source, source / "archive").sha256 == pack(source, source / "archive").sha256
    (source / "archive").unlink()
    store = open_store((source / "deep" / "store").as_uri())
    first = publish_source(store, source)
    assert publish_source(store, source) == first
    assert store.list("sources/") == [first.key]
    assert first.files == 1


@pytest.mark.parametrize(
    ("pattern", "hidden", "shown"),
    [
        ("out", ["out", "out/a/b"], ["outer", "a/out"]),
        ("./out/", ["out", "out/a"], ["o"]),
        ("out/*.json", ["out/a.json", "out/.json"], ["out/a/b.json", "out/a.jsonl"]),
        ("out/?/x", ["out/a/x", "out/a/x/y"], ["out/ab/x", "out//x"]),
        ("**/x", ["x", "a/x", "a/b/x/c"], ["ax", "a/xb"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "b"]),
        ("[ab]c", ["ac", "bc", "[ab]c"], ["cc"]),
        ("[!a]c", ["bc", "[!a]c"], ["ac", "/c"]),
        ("[^a]c", ["^c", "ac"], ["bc"]),
        ("[", ["["], ["a"]),
        ("a.b", ["a.b"], ["axb"]),
    ],
)
def test_excludes_match_paths_and_what_is_below(pattern: str, hidden: list[str], shown: list[str]) -> None:
    excludes = Excludes([pattern])
    assert [path for path in hidden if not excludes.hides_below(path)] == []
    assert [path for path in shown if excludes.hides_below(path)] == []


@given(pattern=st.text(max_size=12), path=st.text(max_size=12))
def test_any_pattern_can_be_used(pattern: str, path: str) -> None:
    excludes = Excludes([pattern])
    excludes.hides_below(path)
    cleaned = pattern.removeprefix("./").rstrip("/")
    assert not cleaned or excludes.hides(cleaned)
