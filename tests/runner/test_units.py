"""What the runner makes of units: slots, environment, judgement, records."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.fakes.hostbench import HostBench, digest, shell, unit, until

pytestmark = pytest.mark.slow


def test_every_unit_that_succeeds_leaves_its_outputs_a_log_and_a_record(bench: HostBench) -> None:
    bench.spec(
        [unit(i, shell(f"mkdir -p out; echo {i} > out/{i}; echo said {i}"), outputs=[f"out/{i}"]) for i in range(5)]
    )
    finished = bench.run()
    assert (finished["state"], finished["total"], finished["succeeded"], finished["failed"]) == ("succeeded", 5, 5, 0)
    assert (finished["realized_width"], finished["merge"], finished["cached"]) == (8, None, 0)
    for i in range(5):
        record = bench.record(f"unit {i}")
        [output] = record["outputs"]
        assert output == {"path": f"out/{i}", "size": 2, "sha256": digest(f"{i}\n")}
        assert (bench.store / "blobs" / output["sha256"]).read_text() == f"{i}\n"
        assert (bench.store / record["log"]).read_text() == f"said {i}\n"
        assert record["exit_code"] == 0
        assert record["ended"] - record["started"] == pytest.approx(record["seconds"], abs=1e-5)
        assert (record["run_id"], record["dispatch_id"], record["lease"]) == ("R", "D", "L")


def test_a_unit_that_fails_does_not_stop_the_others(bench: HostBench) -> None:
    bench.spec([unit(0, shell("exit 3")), *(unit(i, ["true"]) for i in range(1, 6))], width=1)
    bench.gpus(1)
    finished = bench.run()
    assert (finished["state"], finished["succeeded"], finished["failed"]) == ("failed", 5, 1)
    assert "unit 0" in finished["reason"]
    assert "exit code 3" in finished["reason"]
    failure = bench.failures()[digest("unit 0")]
    assert (failure["reason"], failure["exit_code"]) == ("exit", 3)
    assert not (bench.store / "records" / f"{digest('unit 0')}.json").exists()


def test_a_failed_unit_is_tried_once(bench: HostBench) -> None:
    bench.spec([unit(0, shell("echo x >> tries; exit 1"))])
    bench.run()
    assert bench.work("tries").read_text() == "x\n"


@pytest.mark.parametrize(
    ("script", "outputs", "reason"),
    [
        ("true", ["out"], "output_missing"),
        ("true", ["old"], "output_stale"),
        ("true", ["old*"], "output_stale"),
        ("touch new", ["new", "never"], "output_missing"),
        ("touch new; exit 3", ["new"], "exit"),
        ("touch new; kill -9 $$", ["new"], "signal"),
        ("touch new", ["new"], ""),
        ("touch new1 new2", ["new*"], ""),
        ("echo more >> old", ["old"], ""),
        ("cp -p old keep; mv keep old", ["old"], ""),
        ("mkdir -p d/e; touch d/e/f", ["d"], ""),
        ("mkdir -p d/e; touch d/e/f", ["**/f"], ""),
        ("touch '[x]*'", ["[x]*"], ""),
        ("mkdir d", ["d"], "output_missing"),
    ],
)
def test_exit_code_and_fresh_outputs_decide(bench: HostBench, script: str, outputs: list[str], reason: str) -> None:
    bench.spec([unit(0, shell(script), outputs=outputs)], setup={"argv": shell("echo before > old")})
    finished = bench.run()
    failure = bench.failures().get(digest("unit 0"), {"reason": ""})
    assert failure["reason"] == reason
    assert finished["state"] == ("failed" if reason else "succeeded")


def test_only_what_the_unit_made_is_published_from_a_glob(bench: HostBench) -> None:
    bench.spec(
        [unit(0, shell("echo b > out/b"), outputs=["out/*"])], setup={"argv": shell("mkdir out; echo a > out/a")}
    )
    bench.run()
    assert [output["path"] for output in bench.record("unit 0")["outputs"]] == ["out/b"]


def test_partial_outputs_of_a_failure_stay_and_are_named(bench: HostBench) -> None:
    bench.spec([unit(0, shell("echo half > out; exit 1"), outputs=["out"])])
    bench.run()
    assert bench.work("out").read_text() == "half\n"
    assert bench.failures()[digest("unit 0")]["partial"] == ["out"]
    assert not (bench.store / "blobs").exists()


def test_a_program_that_is_not_there_is_a_spawn_error(bench: HostBench) -> None:
    bench.spec([unit(0, ["no-such-program"]), unit(1, ["true", "nul\0"]), unit(2, ["/etc/passwd"])])
    assert bench.run()["failed"] == 3
    assert {failure["reason"] for failure in bench.failures().values()} == {"spawn_error"}


def test_arguments_reach_the_program_byte_for_byte(bench: HostBench) -> None:
    every = "".join(chr(i) for i in range(1, 256)) + "\u20ac\U0001f600 $HOME `id` $(id) ' \" \\ \n"
    bench.spec(
        [
            unit(0, ["printf", "%s", every], env={"EVERY": every}),
            unit(1, shell('printf %s "$EVERY"'), env={"EVERY": every}),
        ]
    )
    bench.run()
    for name in ("0-1", "1-1"):
        assert (bench.store / f"logs/L/{name}.log").read_bytes() == every.encode()


def test_the_environment_of_a_unit_is_as_promised(bench: HostBench) -> None:
    bench.gpus(4)
    show = "import json,os;print(json.dumps(dict(os.environ)))"
    units = [unit(i, [bench.python, "-c", show], env={"OWN": str(i), "BOTH": "unit"}) for i in range(2)]
    bench.spec(units, width=4, env={"BOTH": "spec", "SPEC": "yes", "CUDA_VISIBLE_DEVICES": "7"})
    bench.run()
    for i in range(2):
        env = json.loads(bench.log(f"{i}-1"))
        assert (env["OWN"], env["BOTH"], env["SPEC"]) == (str(i), "unit", "yes")
        assert (env["WIDELANE_REQUESTED_WIDTH"], env["WIDELANE_WIDTH"]) == ("8", "4")
        assert (env["WIDELANE_SHARD"], env["WIDELANE_SHARDS"]) == (str(i), "2")
        assert env["WIDELANE_UNIT"] == digest(f"unit {i}")
        assert env["CUDA_VISIBLE_DEVICES"] in {f"GPU-{j:08x}" for j in range(4)}
        assert env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"


def test_a_launcher_gets_as_many_gpus_as_it_is_told(bench: HostBench) -> None:
    bench.spec(
        [
            unit(0, shell("echo {gpus} $CUDA_VISIBLE_DEVICES"), gpus=2),
            unit(1, shell("echo {gpus} $CUDA_VISIBLE_DEVICES"), gpus="all"),
        ],
        width=4,
    )
    bench.gpus(4)
    bench.run()
    assert bench.log("0-1") == "2 GPU-00000000,GPU-00000001\n"
    assert bench.log("1-1") == "4 GPU-00000000,GPU-00000001,GPU-00000002,GPU-00000003\n"


def test_two_units_never_share_a_gpu_and_a_free_gpu_takes_the_next_unit(bench: HostBench) -> None:
    hold = "mkdir busy/$CUDA_VISIBLE_DEVICES || exit 9; {0}; rmdir busy/$CUDA_VISIBLE_DEVICES"
    slow = hold.format("while [ $(ls done | wc -l) -lt 8 ]; do sleep 0.02; done")
    short = hold.format("touch done/$WIDELANE_SHARD")
    units = [unit(0, shell(slow)), *(unit(i, shell(short)) for i in range(1, 9))]
    bench.spec(units, width=2, setup={"argv": ["mkdir", "busy", "done"]})
    bench.gpus(2)
    finished = bench.run()
    assert finished["state"] == "succeeded", "the other GPU did all the short units meanwhile"
    record = bench.record("unit 0")
    assert all(bench.record(f"unit {i}")["gpus"] != record["gpus"] for i in range(1, 9))
    assert finished["gpu_seconds_busy"] > record["seconds"]


def test_wide_units_come_before_narrow_ones_and_leave_no_gpu_idle(bench: HostBench) -> None:
    units = [unit(0, ["true"]), unit(1, ["true"]), unit(2, ["true"], gpus=3), unit(3, ["true"], gpus=5)]
    bench.spec(units)
    assert bench.run()["succeeded"] == 4
    assert len(bench.record("unit 3")["gpus"]) == 5
    assert bench.record("unit 2")["gpus"] == ["GPU-00000005", "GPU-00000006", "GPU-00000007"]


def test_a_unit_that_needs_more_gpus_than_there_are_fails_and_the_others_run(bench: HostBench) -> None:
    bench.gpus(2)
    bench.spec([unit(0, ["true"], gpus=4), unit(1, ["true"])], width=2)
    finished = bench.run()
    assert (finished["state"], finished["succeeded"], finished["failed"]) == ("failed", 1, 1)
    assert "needs 4 GPUs, the host has 2" in finished["reason"]


def test_cpu_units_run_on_cpu_slots_and_see_no_gpu(bench: HostBench) -> None:
    bench.spec(
        [unit(i, shell('echo "[$CUDA_VISIBLE_DEVICES] $WIDELANE_WIDTH {gpus}"'), gpus=0) for i in range(3)], width=0
    )
    finished = bench.run()
    assert (finished["state"], finished["realized_width"], finished["gpu_seconds_busy"]) == ("succeeded", 0, 0)
    assert bench.log("2-1") == "[] 0 0\n"


def test_more_gpus_than_the_dispatch_asked_for_are_left_alone(bench: HostBench) -> None:
    bench.spec([unit(0, shell("echo $CUDA_VISIBLE_DEVICES $WIDELANE_WIDTH"), gpus="all")], width=2)
    assert bench.run()["realized_width"] == 2
    assert bench.log("0-1") == "GPU-00000000,GPU-00000001 2\n"
    assert bench.host()["count"] == 8


def test_fewer_gpus_than_expected_are_what_is_reported(bench: HostBench) -> None:
    bench.gpus(3)
    bench.spec([unit(0, shell("echo $WIDELANE_WIDTH"))], width=4)
    assert bench.run()["realized_width"] == 3
    assert bench.log("0-1") == "3\n"


def test_a_log_without_newlines_is_kept_on_the_host_and_clipped_in_the_store(bench: HostBench) -> None:
    big = 40 << 20
    bench.spec([unit(0, shell(f"printf head; head -c {big} /dev/zero; printf tail; printf errors >&2"))])
    assert bench.run()["state"] == "succeeded"
    kept = (bench.store / "logs/L/0-1.log").read_bytes()
    assert len(kept) < 17 << 20
    assert kept.startswith(b"head")
    assert kept.endswith(b"tailerrors")
    assert b"bytes left out]" in kept
    assert (bench.root / "attempts/0-1/log").stat().st_size == big + 14


def test_what_a_unit_leaves_running_is_ended_with_it(bench: HostBench) -> None:
    script = "(trap '' TERM; sleep 600) & setsid sh -c 'sleep 600 & sleep 600' & sleep 0.1; exit 0"
    bench.spec([unit(0, shell(script))], limits={"grace": 0.2})
    assert bench.run()["state"] == "succeeded"
    exit_record = json.loads((bench.root / "attempts/0-1/exit.json").read_text())
    assert exit_record["leftovers"] >= 3
    assert bench.pids("sleep") == []


def test_the_exit_record_tells_what_was_used(bench: HostBench) -> None:
    bench.spec([unit(0, [bench.python, "-c", "x = bytearray(64 << 20)"])])
    bench.run()
    assert 64 << 10 < bench.record("unit 0")["peak_rss_kib"] < 256 << 10
    exit_record = json.loads((bench.root / "attempts/0-1/exit.json").read_text())
    assert exit_record["rusage"]["utime"] + exit_record["rusage"]["stime"] > 0


def test_signals_that_python_ignores_are_not_ignored_by_units(bench: HostBench) -> None:
    show = "grep -E 'Sig(Blk|Ign)' /proc/self/status"
    bench.spec([unit(0, shell(f"exec {show}"))])
    bench.run()
    masks = [int(line.split()[1], 16) for line in bench.log("0-1").splitlines()]
    pythons_own = sum(1 << (number - 1) for number in (signal.SIGPIPE, signal.SIGXFSZ))
    assert [mask & pythons_own for mask in masks] == [0, 0]


def test_a_unit_inherits_no_descriptor_and_no_input(bench: HostBench) -> None:
    bench.spec([unit(0, shell("ls -l /proc/self/fd | grep -c -- '->'; cat; echo end"))])
    bench.run()
    assert bench.log("0-1") == "4\nend\n", "0, 1, 2 and the one that ls opened"


def test_folders_for_outputs_are_there_before_the_start(bench: HostBench) -> None:
    bench.spec([unit(0, shell("echo x > a/b/c"), outputs=["a/b/c"])], workdir="sub")
    assert bench.run()["state"] == "succeeded"
    assert bench.work("sub/a/b/c").exists()
    assert bench.record("unit 0")["workdir"] == "sub"


def test_units_run_in_the_work_folder_named(bench: HostBench) -> None:
    bench.spec([unit(0, ["pwd"])], workdir="some/where")
    bench.run()
    assert bench.log("0-1").strip() == str(bench.work("some/where"))


def test_an_output_that_cannot_be_read_counts_as_missing(bench: HostBench) -> None:
    bench.spec([unit(0, shell("ln -s /proc/self/mem out"), outputs=["out"])])
    assert bench.run()["state"] == "failed"
    assert bench.failures()[digest("unit 0")]["reason"] == "output_missing"


def test_a_scheduler_with_nothing_to_do_sleeps(bench: HostBench) -> None:
    bench.spec([unit(i, shell("touch up$WIDELANE_SHARD; while [ ! -e go ]; do sleep 0.05; done")) for i in range(8)])
    host = bench.start()
    until(lambda: all(bench.work(f"up{i}").exists() for i in range(8)))

    def wakeups() -> int:
        found = [path.read_text() for path in Path(f"/proc/{host.pid}/task").glob("*/status")]
        return sum(int(text.split("voluntary_ctxt_switches:")[1].split()[0]) for text in found)

    seen = [wakeups()] * 20

    def asleep() -> bool:
        seen.append(wakeups())
        return len(set(seen[-100:])) == 1 and len(seen) > 200

    until(asleep)
    bench.work("go").touch()
    assert host.wait(30) == 0
