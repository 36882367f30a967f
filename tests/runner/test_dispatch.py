"""One dispatch on one host, from the lock to finished.json."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.fakes.hostbench import HostBench, digest, shell, unit, until
from widelane.runner.host.attempt import locked
from widelane.store import open_store, pack, publish_source

pytestmark = pytest.mark.slow

MERGE = {"digest": digest("merge"), "argv": shell("cat out/* > all; echo {gpus} >> all"), "outputs": ["all"]}


def made(i: int) -> dict[str, object]:
    return unit(i, shell(f"echo {i} > out/{i}"), outputs=[f"out/{i}"])


def test_setup_runs_once_before_any_unit_and_keeps_its_log(bench: HostBench) -> None:
    bench.spec(
        [unit(i, ["cat", "ready"]) for i in range(3)], setup={"argv": shell("echo x >> ready; echo {gpus} GPUs")}
    )
    assert bench.run()["state"] == "succeeded"
    assert bench.work("ready").read_text() == "x\n"
    assert bench.log("setup") == "8 GPUs\n"


def test_a_setup_that_fails_is_a_broken_environment_and_no_unit_starts(bench: HostBench) -> None:
    bench.spec([unit(0, ["touch", "ran"])], setup={"argv": shell("echo no such package; exit 7")}, merge=MERGE)
    finished = bench.run()
    assert (finished["state"], finished["merge"], finished["succeeded"]) == ("env_broken", None, 0)
    assert finished["reason"] == "setup: exit code 7"
    assert bench.log("setup") == "no such package\n"
    assert not bench.work("ran").exists()
    assert bench.failures() == {}


def test_merge_runs_once_after_the_last_unit_and_is_recorded_like_a_unit(bench: HostBench) -> None:
    bench.spec([made(i) for i in range(4)], merge=MERGE)
    assert bench.run()["merge"] == "succeeded"
    record = bench.record("merge")
    assert [output["path"] for output in record["outputs"]] == ["all"]
    assert bench.work("all").read_text() == "0\n1\n2\n3\n8\n"
    assert (bench.store / "logs/L/merge-1.log").exists()


def test_merge_does_not_run_when_a_unit_failed(bench: HostBench) -> None:
    bench.spec([made(0), unit(1, ["false"])], merge=MERGE)
    finished = bench.run()
    assert (finished["state"], finished["merge"]) == ("failed", None)
    assert not bench.work("all").exists()


def test_a_merge_that_fails_fails_the_dispatch(bench: HostBench) -> None:
    bench.spec([made(0)], merge={**MERGE, "argv": shell("exit 4")})
    finished = bench.run()
    assert (finished["state"], finished["merge"], finished["failed"]) == ("failed", "failed", 0)
    assert finished["reason"] == "merge: exit: exit code 4"
    assert bench.failures()[digest("merge")]["reason"] == "exit"


def test_units_with_a_record_are_done_and_their_outputs_are_fetched_for_the_merge(
    bench: HostBench, tmp_path: Path, runner: Path
) -> None:
    other = HostBench(tmp_path / "other", runner)
    other.store, other.mark = bench.store, bench.mark
    bench.key = "specs/D/M.json"
    other.spec([made(0), made(1)])
    assert other.run()["succeeded"] == 2
    again = unit(0, shell("touch ran-again"), outputs=["out/0"])
    bench.spec([again, made(1), made(2)], merge=MERGE, lease="M")
    bench.run()
    finished = json.loads((bench.store / "leases/M/finished.json").read_text())
    assert (finished["succeeded"], finished["cached"], finished["merge"]) == (3, 2, "succeeded")
    assert bench.work("all").read_text() == "0\n1\n2\n8\n"
    assert not bench.work("ran-again").exists()


def test_nothing_is_set_up_or_run_when_everything_has_a_record(bench: HostBench) -> None:
    bench.spec([made(0)], merge=MERGE)
    bench.run()
    before = (bench.store / f"records/{digest('merge')}.json").read_bytes()
    bench.key, bench.root = "specs/D/M.json", bench.base / "root2"
    bench.spec([made(0)], merge=MERGE, lease="M", setup={"argv": ["touch", "set-up"]})
    bench.run()
    finished = json.loads((bench.store / "leases/M/finished.json").read_text())
    assert (finished["state"], finished["cached"], finished["merge"]) == ("succeeded", 1, "succeeded")
    assert not bench.work("set-up").exists()
    assert (bench.store / f"records/{digest('merge')}.json").read_bytes() == before


def test_source_and_inputs_are_in_the_work_folder_before_setup(bench: HostBench, tmp_path: Path) -> None:
    bench.spec([unit(0, shell("echo from the other phase > data"), outputs=["data"])], workdir="gen")
    bench.run()
    source = tmp_path / "source"
    source.mkdir()
    (source / "run.sh").write_text("#!/bin/sh\ncat gen/data\n")
    (source / "run.sh").chmod(0o755)
    packed = publish_source(open_store(bench.store.as_uri()), source)
    bench.key, bench.root = "specs/D/M.json", bench.base / "root2"
    bench.spec(
        [unit(1, ["./run.sh"])],
        lease="M",
        source={"sha256": packed.sha256, "key": packed.key},
        inputs=[digest("unit 0")],
        setup={"argv": ["./run.sh"]},
    )
    bench.run()
    assert (bench.store / "logs/M/1-1.log").read_text() == "from the other phase\n"
    assert (bench.store / "logs/M/setup.log").read_text() == "from the other phase\n"


def test_a_source_with_another_content_than_its_name_is_refused(bench: HostBench, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a").write_text("a")
    (bench.store / "sources").mkdir()
    pack(tmp_path / "s", bench.store / "sources" / "x.tar.gz")
    bench.spec([unit(0, ["true"])], source={"sha256": "0" * 64, "key": "sources/x.tar.gz"})
    finished = bench.run()
    assert finished["state"] == "env_broken"
    assert "sha256" in finished["reason"]


def test_a_source_that_is_not_in_the_store_is_a_broken_environment(bench: HostBench) -> None:
    bench.spec([unit(0, ["true"])], source={"sha256": "0" * 64, "key": "sources/none.tar.gz"})
    finished = bench.run()
    assert finished["state"] == "env_broken"
    assert "sources/none.tar.gz" in finished["reason"]


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        ("exit 9", "exited with 9"),
        ("echo 'NVIDIA-SMI has failed because it could not talk to the driver'; exit 0", "has failed"),
        ("echo No devices were found; exit 6", "No devices"),
        ("exit 0", "lists no GPU"),
    ],
)
def test_a_machine_without_gpus_says_so(bench: HostBench, script: str, trouble: str) -> None:
    bench.nvidia_smi(script)
    bench.spec([unit(0, ["true"])])
    finished = bench.run()
    assert (finished["state"], finished["realized_width"], finished["total"]) == ("env_broken", 0, 1)
    assert trouble in finished["reason"]
    assert bench.host()["count"] == 0


def test_cards_that_do_not_tell_their_memory_or_uuid_are_used_by_index(bench: HostBench) -> None:
    bench.nvidia_smi("echo '0, [N/A], NVIDIA A100, [N/A]'; echo '1, GPU-1, NVIDIA, A100, 40960'")
    bench.spec([unit(i, shell("echo $CUDA_VISIBLE_DEVICES; sleep 0.2")) for i in range(2)], width=2)
    assert bench.run()["realized_width"] == 2
    assert {bench.log("0-1"), bench.log("1-1")} == {"0\n", "GPU-1\n"}
    assert [gpu["memory_mib"] for gpu in bench.host()["gpus"]] == [None, 40960]
    assert bench.host()["gpus"][1]["name"] == "NVIDIA, A100"


def test_nvidia_smi_is_not_asked_for_cpu_work(bench: HostBench) -> None:
    bench.nvidia_smi(f"touch {bench.base}/asked")
    bench.spec([unit(0, ["true"])], width=0)
    assert bench.run()["state"] == "succeeded"
    assert not (bench.base / "asked").exists()


def test_a_second_process_on_the_same_root_refuses_and_names_the_holder(bench: HostBench) -> None:
    bench.spec([unit(0, shell("touch up; while [ ! -e go ]; do sleep 0.02; done"))])
    first = bench.start()
    until(bench.work("up").exists)
    bench.run(code=3)
    assert f"is held by pid {first.pid}" in bench.said()
    bench.work("go").touch()
    assert first.wait(30) == 0


def test_a_root_belongs_to_one_spec(bench: HostBench) -> None:
    bench.spec([unit(0, ["true"])])
    bench.run()
    bench.key = "specs/D/M.json"
    bench.spec([unit(1, ["true"])], lease="M")
    bench.run(code=2)
    assert "belongs to specs/D/L.json" in bench.said()


def test_a_finished_dispatch_given_again_does_nothing(bench: HostBench) -> None:
    bench.spec([unit(0, shell("echo x >> ran"))])
    first = bench.run()
    assert bench.run() == first
    assert bench.work("ran").read_text() == "x\n"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("not json", "not JSON"),
        ("[]", "expected an object"),
        ('{"spec": 2}', "reads form 1"),
        ('{"spec": 1, "units": [{"index": 0}]}', "spec.units[0].digest: missing"),
        ('{"spec": 1, "units": [{"index": 0, "digest": "d", "argv": []}]}', "spec.units[0].argv: empty"),
        (
            '{"spec": 1, "units": [{"index": 0, "digest": "d", "argv": ["a"], "outputs": ["../x"]}]}',
            "below the work folder",
        ),
        ('{"spec": 1, "units": [{"index": 0, "digest": "d", "argv": ["a"], "outputs": ["a**b"]}]}', "a**b"),
        ('{"spec": 1, "units": [{"index": 0, "digest": "d", "argv": ["a"], "gpus": "some"}]}', "gpus"),
        ('{"spec": 1, "units": [], "run_id": 7}', "spec.run_id: expected str"),
    ],
)
def test_a_spec_that_cannot_be_read_is_refused_with_the_place(bench: HostBench, spec: str, words: str) -> None:
    bench.spec([])
    (bench.store / bench.key).write_text(spec)
    bench.run(code=2)
    assert words in bench.said()


def test_a_host_that_cannot_read_its_spec_says_so_in_the_store(bench: HostBench) -> None:
    bench.spec([{"index": 0}])
    finished = bench.run()
    assert (finished["state"], finished["succeeded"]) == ("env_broken", 0)
    assert "spec.units[0].digest: missing" in finished["reason"]


def test_a_spec_that_is_not_there_and_a_store_of_another_kind_are_refused(bench: HostBench) -> None:
    bench.run(code=2)
    assert "specs/D/L.json" in bench.said()
    bench.store_url = "ftp://x"
    bench.run(code=2)
    assert "ftp" in bench.said()


def test_progress_says_what_each_gpu_does(bench: HostBench) -> None:
    bench.gpus(2)
    wait = shell("touch up$WIDELANE_SHARD; while [ ! -e go ]; do sleep 0.02; done")
    bench.spec([unit(i, wait) for i in range(2)] + [unit(2, ["true"]), unit(3, ["false"])], width=2)
    host = bench.start()
    seen = bench.store / "leases/L/progress.json"
    until(lambda: seen.exists() and json.loads(seen.read_text())["running"] == 2)
    progress = json.loads(seen.read_text())
    assert progress == {
        "total": 4,
        "succeeded": 0,
        "failed": 0,
        "running": 2,
        "gpus": [{"gpu": "0", "done": 0, "running": "0"}, {"gpu": "1", "done": 0, "running": "1"}],
        "state": "running",
    }
    until(bench.work("up1").exists)
    bench.work("go").touch()
    assert host.wait(30) == 0
    last = json.loads(seen.read_text())
    assert (last["succeeded"], last["failed"], last["running"], last["state"]) == (3, 1, 0, "failed")
    assert sum(gpu["done"] for gpu in last["gpus"]) == 4
    assert json.loads((bench.root / "progress.json").read_text()) == last


def test_a_terminated_dispatch_ends_its_units_and_says_cancelled(bench: HostBench) -> None:
    bench.gpus(2)
    gentle = "trap 'echo bye; exit 0' TERM; touch up0; while :; do sleep 0.02; done"
    stubborn = "trap '' TERM; touch up1; while :; do sleep 0.02; done"
    bench.spec(
        [unit(0, shell(gentle)), unit(1, shell(stubborn)), unit(2, ["touch", "ran"])], width=2, limits={"grace": 0.3}
    )
    host = bench.start()
    until(lambda: bench.work("up0").exists() and bench.work("up1").exists())
    host.send_signal(signal.SIGTERM)
    assert host.wait(30) == 0
    finished = json.loads((bench.store / "leases/L/finished.json").read_text())
    assert (finished["state"], finished["succeeded"], finished["failed"]) == ("cancelled", 0, 0)
    assert not bench.work("ran").exists()
    assert not (bench.store / "records").exists()
    assert (bench.root / "attempts/0-1/log").read_text().endswith("bye\n")


def test_a_dispatch_terminated_before_it_started_anything_is_cancelled(bench: HostBench) -> None:
    bench.nvidia_smi(
        f"touch {bench.base}/asked; while [ ! -e {bench.base}/go ]; do sleep 0.02; done; echo 0, GPU-0, A, 1"
    )
    bench.spec([unit(0, ["touch", "ran"])], width=1)
    host = bench.start()
    until((bench.base / "asked").exists)
    host.send_signal(signal.SIGTERM)
    (bench.base / "go").touch()
    assert host.wait(30) == 0
    assert json.loads((bench.store / "leases/L/finished.json").read_text())["state"] == "cancelled"
    assert not bench.work("ran").exists()


def test_the_lock_is_free_again_when_the_process_is_gone(bench: HostBench) -> None:
    bench.spec([unit(0, ["true"])])
    bench.run()
    with locked(bench.root / "lock") as held:
        assert held is not None
