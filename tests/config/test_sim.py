"""Settings against a simulated cloud reach nothing real."""

from __future__ import annotations

import pytest

from tests.config.conftest import Load
from tests.config.test_values import WHOLE
from widelane.config import GcpSettings
from widelane.errors import ConfigError

URL = "http://127.0.0.1:4321"


def test_the_gcp_lane_is_configured_even_without_a_file(load: Load):
    settings = load(sim=URL)
    assert settings.gcp == GcpSettings(project="sim-project", endpoint=URL)
    assert settings.lanes == ("gcp",)


def test_nothing_real_is_left(load: Load):
    settings = load(WHOLE, sim=f"{URL}/")
    assert settings.lanes == ("gcp", "local")
    assert (settings.store, settings.notify) == (None, None)
    assert settings.gcp == GcpSettings(
        project="sim-project",
        endpoint=URL,
        regions=("us-central1", "us-west1"),
        network="n",
        subnetwork="s",
        image="i",
        disk_type="pd-ssd",
        disk_gib=300,
    )
    assert settings.policy == {"short_gpu_hours": 3.0}


def test_the_project_of_the_simulation_can_be_named(load: Load):
    gcp = load(WHOLE).simulated(URL, "other").gcp
    assert gcp is not None
    assert (gcp.project, gcp.endpoint) == ("other", URL)


def test_no_file_can_set_an_endpoint(load: Load):
    with pytest.raises(ConfigError, match="endpoint is not a key"):
        load(f'[lanes.gcp]\nproject = "p"\nendpoint = "{URL}"')


@pytest.mark.parametrize("sim", ["eight-is-gone.yaml", "", "127.0.0.1:4321"])
def test_what_is_no_url_is_refused(sim: str, load: Load):
    with pytest.raises(ConfigError, match="not the URL"):
        load(sim=sim)
