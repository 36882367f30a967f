"""The programs that a machine starts with, apart from any cloud."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from widelane.lanes import hostside
from widelane.lanes.gcp import bootstrap
from widelane.lanes.gcp.startup import startup
from widelane.runner.host.store import StoreMissingError

BOOTSTRAP = """
import pathlib, subprocess, sys
said = subprocess.run(["python", "-c", "print('python works')"], capture_output=True, text=True, check=True).stdout
pathlib.Path(sys.argv[2], "ran").write_text(sys.argv[1] + " " + said)
"""


class Told(bootstrap.Metadata):
    """A metadata server that remembers what was published and answers from a list."""

    def __init__(self, *preempted: str) -> None:
        super().__init__("127.0.0.1:9")
        self.published: list[str] = []
        self.preempted = list(preempted)
        self.asked: list[str] = []

    def get(self, path: str, seconds: float = 10.0) -> str:
        self.asked.append(path)
        return self.preempted.pop(0) if len(self.preempted) > 1 else self.preempted[0]

    def publish(self, text: str) -> bool:
        self.published.append(text)
        return True


@pytest.fixture
def keep(tmp_path: Path) -> Callable[..., tuple[str, int, Told]]:
    """Run a Python text under the keeper: its reason, how often it was started, and what was published."""

    def run(code: str, *, preempted: bool = False) -> tuple[str, int, Told]:
        starts = tmp_path / "starts"
        starts.write_text("")
        whole = f"import os, sys\nopen({str(starts)!r}, 'a').write('x')\nn = len(open({str(starts)!r}).read())\n{code}"
        told = Told("FALSE")
        preemption = bootstrap.Preemption(told)
        if preempted:
            preemption.noticed.set()
        keeper = hostside.Keeper(told.publish, tmp_path / "progress.json", preemption.noticed, pause=lambda _: None)
        reason = keeper.keep([sys.executable, "-S", "-c", whole])
        return reason, len(starts.read_text()), told

    return run


def test_the_bootstrap_is_python_3_9_with_nothing_but_the_standard_library() -> None:
    tree = ast.parse(startup().bootstrap, feature_version=(3, 9))
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert names <= sys.stdlib_module_names


def test_a_runner_that_crashes_is_started_again(keep: Callable[..., tuple[str, int, Told]]) -> None:
    assert keep("os.kill(os.getpid(), 9) if n < 3 else None")[:2] == ("", 3)


def test_a_runner_that_always_crashes_is_given_up(keep: Callable[..., tuple[str, int, Told]]) -> None:
    reason, starts, _ = keep("sys.exit(1)")
    assert starts == hostside.MOST_RESTARTS + 1
    assert "last with 1" in reason


def test_a_runner_that_can_never_work_is_not_repeated(keep: Callable[..., tuple[str, int, Told]]) -> None:
    reason, starts, _ = keep("sys.exit(2)")
    assert starts == 1
    assert reason


def test_nothing_is_started_again_after_the_notice(keep: Callable[..., tuple[str, int, Told]]) -> None:
    assert keep("sys.exit(1)", preempted=True)[:2] == ("", 1)


def test_progress_is_published_when_it_changed(keep: Callable[..., tuple[str, int, Told]], tmp_path: Path) -> None:
    (tmp_path / "progress.json").write_text('{"total":1}')
    _, starts, told = keep("sys.exit(1 if n < 3 else 0)")
    assert (starts, told.published) == (3, ['{"total":1}'])


def test_the_notice_is_a_value_not_a_status(eventually: Callable[..., None]) -> None:
    told = Told("FALSE\n", "TRUE\n")
    preemption = bootstrap.Preemption(told)
    preemption.start()
    eventually(preemption.noticed.is_set)
    preemption.join()
    assert told.asked[0] == "instance/preempted"
    assert "wait_for_change=true" in told.asked[1]


def test_no_name_of_the_composed_program_is_defined_by_two_of_its_parts() -> None:
    tree = ast.parse(startup().bootstrap)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names += [
        target.id
        for node in tree.body
        for target in (node.targets if isinstance(node, ast.Assign) else [])
        if isinstance(target, ast.Name)
    ]
    assert {name for name in names if names.count(name) > 1} <= {"T"}


def test_the_composed_program_needs_nothing_of_this_one(tmp_path: Path) -> None:
    program = tmp_path / "bootstrap.py"
    program.write_text(startup().bootstrap)
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import runpy; runpy.run_path({str(program)!r})['open_store']('gs://things')",
        ],
        env={"PATH": "/usr/bin:/bin", "NO_GCE_CHECK": "true"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_boots_are_counted_and_not_starts(tmp_path: Path) -> None:
    counted = [bootstrap.count_boots(tmp_path, boot) for boot in ("a", "a", "b", "a", "c")]
    assert counted == [1, 1, 2, 2, 3]
    assert bootstrap.count_boots(tmp_path) == bootstrap.count_boots(tmp_path) == 4


def test_a_machine_that_boots_in_a_loop_gives_up_and_says_so(tmp_path: Path) -> None:
    for number in range(bootstrap.MOST_BOOTS):
        bootstrap.count_boots(tmp_path, f"boot-{number}")

    class Attributes(bootstrap.Metadata):
        def __init__(self) -> None:
            super().__init__("127.0.0.1:9")

        def attribute(self, key: str, default: str | None = None) -> str:
            return (tmp_path / "store").as_uri() if key == "widelane-store" else "x"

    assert "boots in a loop" in bootstrap.work(Attributes(), tmp_path)


def test_the_store_is_waited_for_until_it_answers_but_not_for_what_is_not_there() -> None:
    waits: list[float] = []

    def come_up() -> str:
        if len(waits) < 3:
            raise ConnectionRefusedError("not yet")
        return "here"

    assert hostside.patiently(come_up, waits.append) == "here"
    assert waits == [1.0, 2.0, 4.0]

    def refuse() -> None:
        raise StoreMissingError("no such key")

    with pytest.raises(StoreMissingError):
        hostside.patiently(refuse, waits.append)
    assert len(waits) == 3


def test_a_store_that_never_answers_is_given_up_in_bounded_time() -> None:
    waits: list[float] = []

    def refuse() -> None:
        raise ConnectionRefusedError("never")

    with pytest.raises(ConnectionRefusedError):
        hostside.patiently(refuse, waits.append)
    assert hostside.STORE_SECONDS <= sum(waits) <= 2 * hostside.STORE_SECONDS


@pytest.mark.parametrize(("lists", "looks"), [([0, 1, 2], 2), ([2], 0), ([0] * 999, 120)])
def test_the_driver_is_waited_for_in_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lists: list[int], looks: int
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    waits: list[float] = []

    def show(number: int) -> None:
        text = "".join(f"GPU {n}: a card" + chr(10) for n in range(number))
        (programs / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<'E'\n{text}E\n")
        (programs / "nvidia-smi").chmod(0o755)

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if lists[len(waits)] != lists[len(waits) - 1]:
            show(lists[len(waits)])

    show(lists[0])
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    hostside.wait_for_driver(2, wait)
    assert len(waits) == looks


@pytest.fixture
def metadata_host() -> Iterator[str]:
    """A server that hands out a bootstrap which only says that it ran."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fine = self.path == "/computeMetadata/v1/instance/attributes/widelane-bootstrap"
            fine = fine and self.headers.get("Metadata-Flavor") == "Google"
            self.send_response(200 if fine else 404)
            self.end_headers()
            self.wfile.write(BOOTSTRAP.encode())

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_start_up_script_passes_over_an_old_python_and_runs_the_bootstrap(
    tmp_path: Path, metadata_host: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {
        "python3": "#!/bin/sh\nexit 1\n",
        "python3.11": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
        "shutdown": "#!/bin/sh\nexit 0\n",
    }.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    script = tmp_path / "startup-script"
    script.write_text(startup().script)
    env = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path), "GCE_METADATA_HOST": metadata_host}
    for _ in range(2):
        subprocess.run(["/bin/sh", str(script)], env=env, check=True, timeout=60)
        assert (tmp_path / ".widelane-host" / "ran").read_text() == "--root python works\n"
