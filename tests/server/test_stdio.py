"""The server as a process: what it loads, what it writes where, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.conftest import PLAN, Connect

pytestmark = pytest.mark.slow

HEAVY = ("google", "grpc", "runpod", "paramiko", "sqlite3", "widelane.dispatcher", "widelane.simcloud", "jsonschema")

LOADED = """
import json, os, sys
from pathlib import Path
import anyio
from mcp.client import Client
from widelane.server.app import build
from widelane.tools.desk import Desk

async def main():
    async with Client(build(Desk.open(Path.cwd(), os.environ)), mode=sys.argv[1]) as client:
        await client.list_tools()
        after_list = sorted(sys.modules)
        answer = await client.call_tool("plan_width", {"plan": sys.argv[2]})
        assert not answer.is_error, answer
        print(json.dumps([after_list, sorted(sys.modules)]))

anyio.run(main)
"""

WAITING = """
import os
from pathlib import Path
from tests.fakes.moves import MovingRuns, status
from widelane import config
from widelane.models.dispatch import DispatchState
from widelane.server.app import serve_stdio
from widelane.tools.desk import Desk

class Slow(MovingRuns):
    def wait(self, run_id, seconds, after_seq=0, *, enough=None):
        import time
        Path("waiting").touch()
        time.sleep(seconds)
        return self.moves[0]

print("a stray line before the start", file=__import__("sys").stderr)
slow = Slow([status(DispatchState.WALKING)])
serve_stdio(Desk(config.load(Path.cwd(), os.environ), cwd=Path.cwd(), runs=lambda _: slow))
"""


class Wire:
    """A server process and its JSON lines."""

    def __init__(self, arguments: list[str], folder: Path, repo: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(repo)},
        )

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, Any] | None = None, number: int | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if number is not None:
            message["id"] = number
        self.write(json.dumps(message).encode() + b"\n")

    def answer(self, number: int) -> dict[str, Any]:
        """The answer of that number; every line before it has to be JSON as well."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == number:
                return dict(message)
        raise AssertionError(f"no answer {number}: {self.end()}")

    def hello(self) -> None:
        client = {"name": "test", "version": "1"}
        self.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}, 0)
        self.answer(0)
        self.send("notifications/initialized")

    def call(self, tool: str, number: int, **arguments: Any) -> dict[str, Any]:
        self.send("tools/call", {"name": tool, "arguments": arguments}, number)
        return dict(self.answer(number)["result"])

    def end(self) -> tuple[int, str]:
        """(exit code, stderr) after stdin is closed."""
        _, stderr = self.process.communicate(timeout=30)
        return self.process.returncode, stderr.decode()


@pytest.fixture
def wire(tmp_path: Path, repo: Path) -> Iterator[Wire]:
    """The server, started in `tmp_path`."""
    server = Wire(["-m", "widelane.server"], tmp_path, repo)
    yield server
    server.process.kill()
    server.process.communicate()


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_listing_tools_loads_neither_a_cloud_nor_the_ledger(tmp_path: Path, era: str):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, era, PLAN], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    after_list, after_plan = json.loads(done.stdout)
    assert not [name for name in after_list if name.startswith(tuple(f"{heavy}." for heavy in HEAVY)) or name in HEAVY]
    clouds = ("google", "grpc", "runpod", "paramiko")
    assert not [name for name in after_plan if name.partition(".")[0] in clouds]


@pytest.mark.anyio
async def test_both_eras_work_over_stdio(over_stdio: Connect, tmp_path: Path):
    (tmp_path / "plan.yaml").write_text(PLAN)
    async with over_stdio() as client:
        listed = await client.list_tools()
        assert len(listed.tools) == 5
        judged = await client.call_tool("plan_width", {"plan_path": "plan.yaml"})
        assert judged.structured_content is not None
        assert judged.structured_content["verdict"] == "PASS"
        page = await client.get_prompt("planner")
        assert page.messages
        unknown = await client.call_tool("dispatch_status", {"run_id": "last"})
        assert unknown.is_error


def test_nothing_but_protocol_goes_to_stdout_and_nothing_at_all_to_stderr(wire: Wire):
    wire.hello()
    wire.call("plan_width", 1, plan=PLAN)
    wire.call("plan_width", 2, plan="phases: [")
    assert wire.end() == (0, "")


def test_bytes_that_are_no_utf8_and_lines_that_are_no_json_are_survived(wire: Wire):
    wire.hello()
    wire.write(
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"plan_width","arguments":{"plan":"\xff\xfe"}}}\n'
    )
    refused = wire.answer(7)
    assert refused["result"]["isError"]
    wire.write(b"\x80\x81 not json\n{\n[]\n")
    assert wire.call("plan_width", 8, plan=PLAN)["structuredContent"]["verdict"] == "PASS"


def test_five_megabytes_of_plan_are_answered(wire: Wire):
    wire.hello()
    found = wire.call("plan_width", 1, plan="x: " + "a" * 5_000_000)
    assert found["isError"]
    assert len(found["content"][0]["text"]) < 5000
    assert wire.call("plan_width", 2, plan=PLAN)["structuredContent"]["verdict"] == "PASS"


def test_a_configuration_that_cannot_be_read_is_said_by_the_tools(wire: Wire, tmp_path: Path):
    (tmp_path / "widelane.toml").write_text("[lanes.gcp]\nproject = 3\n")
    wire.hello()
    refused = wire.call("plan_width", 1, plan=PLAN)
    assert refused["isError"]
    assert "bad_config" in refused["content"][0]["text"]
    assert "widelane.toml" in refused["content"][0]["text"]


def test_a_client_that_vanishes_in_the_middle_of_a_wait_ends_the_server(tmp_path: Path, repo: Path, eventually: Any):
    server = Wire(["-c", WAITING], tmp_path, repo)
    server.hello()
    server.send("tools/call", {"name": "dispatch_status", "arguments": {"run_id": "r1", "wait_s": 50}}, 1)
    eventually((tmp_path / "waiting").exists)
    code, stderr = server.end()
    assert code == 0
    assert "Traceback" not in stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_though_stdin_is_open(wire: Wire, number: signal.Signals):
    wire.hello()
    wire.process.send_signal(number)
    assert wire.process.wait(timeout=20) == -number


def test_an_unknown_option_is_refused_with_the_usage(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "widelane.server", "--http"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 2
    assert "usage" in done.stderr
    assert done.stdout == ""
