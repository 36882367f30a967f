"""The tree of a git revision, by the system's git, without a shell and without asking anyone anything."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from widelane.errors import StoreError
from widelane.runner.host.unpack import ArchiveError, unpack

_SECONDS = 900
_REV = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@+-]*")
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GCM_INTERACTIVE": "never",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
}


def fetch_git(url: str, rev: str, into: Path) -> str:
    """Unpack the tree of `rev` (a commit, tag or branch) into an empty folder; returns the commit.

    Submodules and LFS contents are not fetched. Raises `StoreError`.
    """
    if not url or url.startswith("-"):
        raise StoreError(f"not a git URL: {url!r}")
    if not _REV.fullmatch(rev) or ".." in rev:
        raise StoreError(f"not a git revision: {rev!r}", hint="a commit, a tag or a branch")
    with tempfile.TemporaryDirectory(prefix="widelane-git-") as folder:
        clone = Path(folder) / "clone"
        _git(Path(folder), "clone", "--quiet", "--no-checkout", "--", url, str(clone))
        commit = _commit(clone, rev)
        tar = Path(folder) / "tree.tar"
        _git(clone, "archive", "--format=tar", f"--output={tar}", commit)
        try:
            unpack(tar, into)
        except (ArchiveError, OSError) as error:
            raise StoreError(f"{url} at {rev}: {error}") from error
    return commit


def _commit(clone: Path, rev: str) -> str:
    for name in (rev, f"refs/remotes/origin/{rev}"):
        found = _try(clone, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if found is not None:
            return found.strip()
    _git(clone, "fetch", "--quiet", "origin", "--", rev)
    return _git(clone, "rev-parse", "--verify", "FETCH_HEAD^{commit}").strip()


def _git(folder: Path, *arguments: str) -> str:
    answer = _run(folder, arguments)
    if answer.returncode != 0:
        said = answer.stderr.decode(errors="replace").strip()
        raise StoreError(f"git {arguments[0]}: {said[-1000:]}", hint="try it with the system's git, without a prompt")
    return answer.stdout.decode(errors="replace")


def _try(folder: Path, *arguments: str) -> str | None:
    answer = _run(folder, arguments)
    return answer.stdout.decode(errors="replace") if answer.returncode == 0 else None


def _run(folder: Path, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    git = shutil.which("git")
    if git is None:
        raise StoreError("a git source needs git, which isn't installed")
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | _QUIET
    try:
        return subprocess.run(
            [git, "-c", "core.hooksPath=/dev/null", *arguments],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError(f"git {arguments[0]}: {error}") from error
