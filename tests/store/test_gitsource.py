"""The tree of a git revision, by the real git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from widelane.errors import StoreError
from widelane.store import fetch_git, pack


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    folder = tmp_path / "upstream"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a").write_text("first")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    git(folder, "tag", "v1")
    (folder / "a").write_text("second")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "second")
    git(folder, "branch", "side/work", "v1")
    return folder


def test_a_commit_a_tag_and_a_branch_can_be_fetched(upstream: Path, tmp_path: Path) -> None:
    head = git(upstream, "rev-parse", "HEAD")
    first = git(upstream, "rev-parse", "v1")
    for number, (rev, commit, text) in enumerate(
        [
            (head, head, "second"),
            (head[:10], head, "second"),
            ("v1", first, "first"),
            ("main", head, "second"),
            ("side/work", first, "first"),
        ]
    ):
        into = tmp_path / str(number)
        assert fetch_git(upstream.as_uri(), rev, into) == commit
        assert (into / "a").read_text() == text
        assert not (into / ".git").exists()


def test_a_fetched_tree_is_the_same_source_as_the_folder(upstream: Path, tmp_path: Path) -> None:
    fetch_git(str(upstream), "main", tmp_path / "tree")
    assert pack(tmp_path / "tree", tmp_path / "1").sha256 == pack(upstream, tmp_path / "2").sha256


@pytest.mark.parametrize("rev", ["", "-x", "--upload-pack=touch x", "a b", "a..b", "v1^{commit}", "no-such-rev", "a:b"])
def test_a_revision_that_is_none_is_refused(upstream: Path, tmp_path: Path, rev: str) -> None:
    with pytest.raises(StoreError):
        fetch_git(upstream.as_uri(), rev, tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


@pytest.mark.parametrize("url", ["", "--upload-pack=touch ran", "ext::sh -c touch% ran", "none-such"])
def test_a_url_cannot_run_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError):
        fetch_git(url, "main", tmp_path / "tree")
    assert list(tmp_path.iterdir()) == []


def test_nobody_is_asked_for_a_password(upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "bin" / "git"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\nenv > {tmp_path}/env; cat > {tmp_path}/stdin; tty >> {tmp_path}/stdin; exit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    with pytest.raises(StoreError):
        fetch_git(upstream.as_uri(), "main", tmp_path / "tree")
    env = (tmp_path / "env").read_text().splitlines()
    assert "GIT_TERMINAL_PROMPT=0" in env
    assert not [line for line in env if line.startswith("GIT_DIR=")]
    assert "not a tty" in (tmp_path / "stdin").read_text()
