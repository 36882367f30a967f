"""What widelane.toml says, and what it can't say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.config.conftest import Load
from widelane import config
from widelane.config import (
    GcpSettings,
    LocalSettings,
    NotifySettings,
    RunpodSettings,
    Settings,
    SlurmSettings,
    SshSettings,
)
from widelane.errors import ConfigError

WHOLE = """
store = "file:///srv/widelane"
[lanes.gcp]
project = "p"
regions = ["us-central1", "us-west1"]
network = "n"
subnetwork = "s"
service_account = "a@p"
bucket = "b-1"
image = "i"
disk = {type = "pd-ssd", gib = 300}
external_address = false
[lanes.local]
[lanes.slurm.fir]
host = "fir"
partition = "gpu"
account = "acc"
time_limit = "1-00:00:00"
workdir = "w"
[lanes.slurm."n.b"]
host = "nb"
[lanes.ssh.box]
host = "box"
gpus = 2
[lanes.runpod]
key_env = "KEY"
[policy]
short_gpu_hours = 3.0
[intents.mine]
base_gpus = 2
[notify]
command = "notify-send 'widelane done'"
"""


def test_every_key_is_read(load: Load, tmp_path: Path):
    assert load(WHOLE) == Settings(
        home=tmp_path / "user" / ".local/state/widelane",
        file=tmp_path / "project" / "widelane.toml",
        store="file:///srv/widelane",
        gcp=GcpSettings(
            project="p",
            regions=("us-central1", "us-west1"),
            network="n",
            subnetwork="s",
            service_account="a@p",
            bucket="b-1",
            image="i",
            disk_type="pd-ssd",
            disk_gib=300,
            external_address=False,
        ),
        local=LocalSettings(),
        slurm={
            "fir": SlurmSettings(host="fir", partition="gpu", account="acc", time_limit="1-00:00:00", workdir="w"),
            "n.b": SlurmSettings(host="nb"),
        },
        ssh={"box": SshSettings(host="box", gpus=2)},
        runpod=RunpodSettings(key_env="KEY"),
        policy={"short_gpu_hours": 3.0},
        intents={"mine": {"base_gpus": 2}},
        notify=NotifySettings(command=("notify-send", "widelane done")),
    )


def test_settings_can_be_kept_as_json_and_read_back(load: Load):
    whole = load(WHOLE)
    assert Settings.model_validate(json.loads(whole.model_dump_json())) == whole


def test_without_a_file_no_lane_is_configured(load: Load):
    settings = load()
    assert (settings.lanes, settings.regions, settings.file, settings.gcp) == ((), (), None, None)


def test_a_lane_is_configured_when_its_section_is_there(load: Load):
    assert load(WHOLE).lanes == ("gcp", "slurm.fir", "slurm.n.b", "ssh.box", "local", "runpod")
    assert load("[lanes.local]\n[lanes.runpod]").lanes == ("local", "runpod")
    assert load("[lanes.runpod]\nenabled = false").lanes == ()
    assert load("[lanes.slurm]\n[lanes.ssh]").lanes == ()


@pytest.mark.parametrize(("disk", "expected"), [('{type = "pd-ssd"}', ("pd-ssd", None)), ("{gib = 50}", ("", 50))])
def test_a_disk_may_say_its_type_or_its_size(disk: str, expected: tuple[str, int | None], load: Load):
    gcp = load(f'[lanes.gcp]\nproject = "p"\ndisk = {disk}').gcp
    assert gcp is not None
    assert (gcp.disk_type, gcp.disk_gib) == expected


@pytest.mark.parametrize(
    ("toml", "where", "fix"),
    [
        ("[lane.gcp]", "lane is not a key", "did you mean `lanes`?"),
        ("[lanes.gpc]", "lanes.gpc is not a key", "did you mean `gcp`?"),
        ("[lanes.gcp]\nprojct = 'p'", "lanes.gcp.projct is not a key", "did you mean `project`?"),
        ("[lanes.gcp]", "lanes.gcp.project is missing", 'write project = "my-project"'),
        ("[lanes.gcp]\nproject = 3", "lanes.gcp.project wants a text; found 3", 'write project = "my-project"'),
        ("[lanes.gcp]\nproject = ''", 'lanes.gcp.project wants a text; found the text ""', "write project ="),
        ("lanes = 3", "lanes wants a table; found 3", "write [lanes]"),
        ("[lanes]\ngcp = 3", "lanes.gcp wants a table; found 3", "write [lanes.gcp]"),
        ("[lanes.gcp]\nproject='p'\nregions = 'x'", "lanes.gcp.regions wants a list of texts", 'regions = ["us-'),
        ("[lanes.gcp]\nproject='p'\nregions = []", "lanes.gcp.regions wants a list of texts", 'regions = ["us-'),
        ("[lanes.gcp]\nproject='p'\nregions = [1]", "lanes.gcp.regions wants a list of texts", 'regions = ["us-'),
        ("[lanes.gcp]\nproject='p'\ndisk = 200", "lanes.gcp.disk wants a table", "write disk = {type"),
        ("[lanes.gcp]\nproject='p'\ndisk = {gib = 0}", "lanes.gcp.disk wants a table", "write disk = {type"),
        ("[lanes.gcp]\nproject='p'\ndisk = {size = 9}", "lanes.gcp.disk wants a table", "write disk = {type"),
        ("[lanes.gcp]\nproject='p'\nbucket = 'gs://b'", "lanes.gcp.bucket wants a text", 'write bucket = "my-bucket"'),
        (
            "[lanes.gcp]\nproject='p'\nexternal_address = 'no'",
            "lanes.gcp.external_address wants true or false",
            "= true",
        ),
        ("[lanes.local]\ngpus = 1", "lanes.local.gpus is not a key", "this section has no keys"),
        ("[lanes.slurm]\nhost = 'x'", "lanes.slurm.host stands in no named section", "write [lanes.slurm.NAME]"),
        ("[lanes.slurm.'a b']", 'lanes.slurm."a b".host is missing', "write host ="),
        ("[lanes.slurm.a]\nhost='h'\ntime_limit=23:30:00", "lanes.slurm.a.time_limit wants a text", '"1-00:00:00"'),
        ("[lanes.ssh.a]\nhost='h'\ngpus=0", "lanes.ssh.a.gpus wants a whole number", "write gpus = 8"),
        ("[lanes.ssh.a]\nhost='h'\ngpus=true", "lanes.ssh.a.gpus wants a whole number", "write gpus = 8"),
        ("[intents]\neval = 3", "intents.eval stands in no named section", "write [intents.NAME]"),
        ("policy = 3", "policy wants a table", "write [policy]"),
        ("[notify]", "notify.command is missing", "write command ="),
        ('[notify]\ncommand = "say \'x"', "notify.command wants a command", "write command ="),
        ("[notify]\ncommand = []", "notify.command wants a command", "write command ="),
        ("store = 'outputs'", "store wants a text", 'write store = "file:///srv/widelane"'),
    ],
)
def test_a_mistake_is_told_with_its_place_and_fix(toml: str, where: str, fix: str, load: Load, tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        load(toml)
    assert caught.value.message.startswith(f"{tmp_path / 'project' / 'widelane.toml'}: {where}")
    assert fix in caught.value.message


def test_all_mistakes_are_told_at_once(load: Load):
    with pytest.raises(ConfigError) as caught:
        load("colour = 1\n[lanes.gcp]\nregions = 1\n[lanes.ssh.a]\n[notify]\ncommand = 1")
    assert len(caught.value.message.splitlines()) == 6


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b"[lanes.gcp", ":1:11: this isn't TOML"),
        (b"a = 1\na = 2\n", ": this isn't TOML"),
        (b"a = 'x\n\xff'", " isn't UTF-8 text: byte 8"),
        (b"a = " + b"[" * 5000, ": this isn't TOML"),
        (b"#" * 2_000_000, " has more than 1024 KiB"),
    ],
)
def test_a_file_that_is_not_toml_is_told_where(data: bytes, where: str, tmp_path: Path):
    (tmp_path / "widelane.toml").write_bytes(data)
    with pytest.raises(ConfigError) as caught:
        config.load(tmp_path, {"HOME": "/nowhere"})
    assert where in caught.value.message
    assert caught.value.message.startswith(str(tmp_path / "widelane.toml"))


PARTS = [
    "[lanes.gcp]",
    "[lanes]",
    "[[lanes]]",
    "project='p'",
    "gcp=1",
    "[lanes.ssh.a]",
    "host='h'",
    "gpus=1",
    "[policy]",
]
PARTS += [
    "a=1979-05-27",
    "disk={gib=1}",
    "disk={}",
    "[notify]",
    "command='x'",
    "[intents.a]",
    "store='gs://a'",
    "lanes=[]",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(toml=st.text(st.sampled_from("[]{}.=\"'\n #ab1,_-:T")) | st.lists(st.sampled_from(PARTS)).map("\n".join))
def test_any_file_gives_settings_or_a_config_error(toml: str, load: Load):
    try:
        found = load(toml)
    except ConfigError as error:
        assert error.message
    else:
        assert Settings.model_validate(found.model_dump()) == found
