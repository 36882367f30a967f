"""Opening lanes by name, and what their checks say before anything is created."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from widelane.config import GcpSettings, Settings
from widelane.errors import ConfigError, LaneAuthError
from widelane.lanes.registry import open_lane
from widelane.simcloud.client import SimEndpoint

COLD = """
import sys
from pathlib import Path
from widelane.config import GcpSettings, Settings
from widelane.lanes.registry import open_lane
settings = Settings(home=Path("/nowhere"), gcp=GcpSettings(project="p"))
open_lane("gcp", settings), open_lane("local", settings)
loaded = sorted({name for name in sys.modules if name.split(".")[0] in {"google", "requests", "grpc"}})
sys.exit(", ".join(loaded) or 0)
"""


def gcp(tmp_path: Path, **fields: object) -> Settings:
    return Settings(home=tmp_path, gcp=GcpSettings.model_validate({"project": "test-project", **fields}))


def test_an_unknown_lane_is_told_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        open_lane("azure", Settings(home=tmp_path))
    assert "gcp, local" in told.value.hint


def test_opening_lanes_loads_no_cloud_library() -> None:
    done = subprocess.run([sys.executable, "-c", COLD], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_without_a_project_the_check_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        open_lane("gcp", Settings(home=tmp_path)).check("")
    assert "[lanes.gcp]" in told.value.hint
    assert "--sim" in told.value.hint


def test_without_credentials_the_check_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(LaneAuthError) as told:
        open_lane("gcp", gcp(tmp_path)).check("")
    assert "gcloud auth application-default login" in told.value.hint
    assert "--sim" in told.value.hint
    assert told.value.code == "login_needed"


def test_a_store_on_this_machine_is_refused_for_machines_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as told:
        open_lane("gcp", gcp(tmp_path)).check(tmp_path.as_uri())
    assert "bucket in [lanes.gcp]" in told.value.hint


def test_a_simulated_cloud_needs_no_credentials(tmp_path: Path, cloud: SimEndpoint) -> None:
    settings = Settings(home=tmp_path).simulated(cloud.url, cloud.project)
    open_lane("gcp", settings).check(tmp_path.as_uri())
