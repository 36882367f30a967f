"""Where the file is looked for, and where the home is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.config.conftest import Load
from widelane import config
from widelane.errors import ConfigError

LOCAL = "[lanes.local]\n"


def _write(folder: Path, text: str = LOCAL) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "widelane.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_nearest_file_above_the_working_folder_counts(tmp_path: Path):
    _write(tmp_path, "[lanes.runpod]")
    file = _write(tmp_path / "a")
    below = tmp_path / "a" / "b" / "c"
    below.mkdir(parents=True)
    settings = config.load(below, {"HOME": str(tmp_path)})
    assert (settings.file, settings.lanes) == (file, ("local",))


def test_the_users_file_counts_when_no_other_is_found(tmp_path: Path):
    file = _write(tmp_path / "user" / ".config" / "widelane")
    other = _write(tmp_path / "xdg" / "widelane")
    env = {"HOME": str(tmp_path / "user")}
    assert config.load(tmp_path, env).file == file
    assert config.load(tmp_path, env | {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).file == other
    assert config.load(tmp_path, env | {"XDG_CONFIG_HOME": "xdg"}).file == file
    nearer = _write(tmp_path)
    assert config.load(tmp_path, env).file == nearer


def test_a_folder_of_that_name_is_no_file(tmp_path: Path):
    (tmp_path / "widelane.toml").mkdir()
    assert config.load(tmp_path, {"HOME": str(tmp_path)}).file is None


def test_a_file_that_another_user_put_above_is_refused(tmp_path: Path):
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    file = _write(tmp_path)
    below = tmp_path / "below"
    below.mkdir()
    os.chown(file, 12345, 12345)
    with pytest.raises(ConfigError, match="belongs to another user"):
        config.load(below, {"HOME": str(tmp_path)})
    assert config.load(tmp_path, {"HOME": str(tmp_path)}).file == file
    os.chown(below, 12345, 12345)
    assert config.load(below, {"HOME": str(tmp_path)}).file == file


@pytest.mark.parametrize(
    ("env", "home"),
    [
        ({}, "user/.local/state/widelane"),
        ({"XDG_STATE_HOME": "/xdg"}, "/xdg/widelane"),
        ({"XDG_STATE_HOME": "relative"}, "user/.local/state/widelane"),
        ({"WIDELANE_HOME": "/w"}, "/w"),
        ({"WIDELANE_HOME": ""}, "user/.local/state/widelane"),
        ({"WIDELANE_HOME": "~/w"}, "user/w"),
        ({"WIDELANE_HOME": "here"}, "project/here"),
    ],
)
def test_the_home_follows_the_environment(env: dict[str, str], home: str, load: Load, tmp_path: Path):
    assert load(**env).home == tmp_path / home


def test_a_home_that_no_folder_can_be_is_refused(load: Load):
    with pytest.raises(ConfigError, match="WIDELANE_HOME"):
        load(WIDELANE_HOME="a\nb")


def test_loading_creates_nothing(load: Load, tmp_path: Path):
    load()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project"]
