"""Every command of README.md is run, and its transcript compared with what comes out."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from widelane import config
from widelane.cli.main import run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARIABLE = re.compile(r"\br\d{4}-[0-9a-f]{8}\b|\b[0-9a-f]{64}\b")
"""Run ids and digests."""


def blocks(language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(README.read_text(encoding="utf-8")) if found == language]


def transcript() -> list[tuple[str, str]]:
    """Each command of the console blocks with the output shown after it."""
    steps: list[tuple[str, str]] = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            steps.append((command, shown))
    return steps


def steady(text: str) -> list[str]:
    """Lines that are the same each time: no progress between events, no ids."""
    lines = [VARIABLE.sub("ID", line).rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("units ")]


def matches(shown: list[str], came: list[str]) -> bool:
    """Whether the output is what is shown; a shown `...` stands for any lines."""
    pattern = "\n".join("(?:.*\n)*?.*" if line.strip() == "..." else re.escape(line) for line in shown)
    return re.fullmatch(pattern, "\n".join(came)) is not None


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory, repo: Path) -> Path:
    """A folder that looks like the checkout as far as the README is concerned."""
    folder = tmp_path_factory.mktemp("workshop")
    (folder / "examples").symlink_to(repo / "examples")
    return folder


def test_every_command_gives_what_the_readme_shows(workshop: Path, repo: Path) -> None:
    steps = transcript()
    assert any(command.startswith("widelane dispatch ") for command, _ in steps)
    env = os.environ | {"COLUMNS": "110"}
    try:
        for command, shown in steps:
            words = shlex.split(command)
            if words[0] == "make":
                subprocess.run(["make", "-n", *words[1:]], cwd=repo, check=True, capture_output=True)
                continue
            program = [sys.executable, "-m", "widelane.cli"] if words[0] == "widelane" else [words[0]]
            done = subprocess.run(
                [*program, *words[1:]],
                cwd=workshop,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=180,
            )
            assert matches(steady(shown), steady(done.stdout)), f"$ {command}\n{done.stdout}"
    finally:
        subprocess.run(
            [sys.executable, "-m", "widelane.cli", "sim", "stop"], cwd=workshop, check=False, capture_output=True
        )


def test_the_transcript_shows_a_revise_and_why() -> None:
    shown = "\n".join(output for _, output in transcript())
    assert "REVISE  " in shown
    assert "error needlessly_narrow" in shown
    assert "error unsharded_wide" in shown
    assert "re-sharded over 4 GPUs" in shown


def test_the_client_configuration_starts_the_server(tmp_path: Path) -> None:
    (text,) = blocks("json")
    (server,) = json.loads(text)["mcpServers"].values()
    assert server["command"] == "widelane"
    done = subprocess.run(
        [sys.executable, "-m", "widelane.cli", *server["args"]],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_configuration_is_a_whole_one(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = blocks("toml")
    (tmp_path / "widelane.toml").write_text(text, encoding="utf-8")
    settings = config.load(tmp_path, {"HOME": str(tmp_path)})
    assert settings.gcp is not None
    monkeypatch.chdir(tmp_path)
    assert run(["check", str(repo / "examples" / "quickstart" / "revised.yaml")]) == 0
    assert capsys.readouterr().out.startswith("PASS")


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 200
