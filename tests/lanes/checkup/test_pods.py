"""The checks of RunPod, against a service that speaks both of its APIs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.runpod_server import A100, KEY, RunpodServer, runpod_server
from widelane.config import RunpodSettings, Settings
from widelane.models.checkup import CheckStatus, SetupCheck

Examined = Callable[..., dict[str, SetupCheck]]
pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunpodServer]:
    with runpod_server(tmp_path / "runpod") as made:
        made.stock = {A100: {1: 4}}
        yield made


@pytest.fixture(params=["rest2", "sdk"])
def settings(request: pytest.FixtureRequest, server: RunpodServer, tmp_path: Path) -> Settings:
    if request.param == "sdk":
        pytest.importorskip("runpod", reason="the transport sdk needs the extra runpod")
    given: dict[str, Any] = {"endpoint": server.url, "transport": request.param, "key_env": "A_KEY"}
    return Settings(home=tmp_path / "home", runpod=RunpodSettings.model_validate(given))


def test_an_account_is_read_and_nothing_is_made_in_it(
    server: RunpodServer, settings: Settings, examined: Examined
) -> None:
    found = examined("runpod", settings, A_KEY=KEY)
    assert {check.status for check in found.values()} == {CheckStatus.OK}
    assert f"{A100}: up to 8" in found["quotas"].message
    assert {heard.what for heard in server.heard} <= {"list", "offer", "gpus"}
    assert not server.pods


def test_a_key_that_is_refused_is_told_as_such(server: RunpodServer, settings: Settings, examined: Examined) -> None:
    check = examined("runpod", settings, A_KEY="wrong")["credentials"]
    assert check.status is CheckStatus.FAIL
    assert "key_env" in check.fix


def test_without_a_key_the_variable_is_named_and_nothing_is_asked(
    server: RunpodServer, settings: Settings, examined: Examined
) -> None:
    check = examined("runpod", settings)["credentials"]
    assert check.status is CheckStatus.FAIL
    assert "export A_KEY=" in check.fix
    assert not server.heard


def test_a_store_that_pods_can_not_reach_is_told(tmp_path: Path, examined: Examined) -> None:
    found = examined("runpod", Settings(home=tmp_path, runpod=RunpodSettings()))
    assert found["store"].status is CheckStatus.FAIL
    assert "gs://" in found["store"].fix


def test_a_service_that_is_not_there_fails_in_words(tmp_path: Path, examined: Examined) -> None:
    given = RunpodSettings(endpoint="http://127.0.0.1:9", key_env="A_KEY")
    check = examined("runpod", Settings(home=tmp_path, runpod=given), A_KEY=KEY)["reach"]
    assert check.status is CheckStatus.FAIL
    assert check.fix
