"""CPU from start to the first tools/list answer: this server against a bare one on the same SDK.

Runs are interleaved and counted in CPU seconds of the server process, so that a busy machine changes little.

    python benchmarks/server_start.py [ROUNDS]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

BARE = """\
from mcp.server import MCPServer
server = MCPServer("bare", version="1", log_level="WARNING")
@server.tool()
async def ping() -> str:
    return "pong"
server.run()
"""
SERVERS = {
    "bare": ["-c", BARE],
    "python -m widelane.server": ["-m", "widelane.server"],
    "widelane serve": ["-m", "widelane.cli", "serve"],
}
GOAL = 1.15


def cpu_of_start(arguments: list[str], folder: Path) -> float:
    """CPU seconds that one server has used when its first tools/list answer is read."""
    env = os.environ | {"WIDELANE_HOME": str(folder / "home")}
    with subprocess.Popen(
        [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=env, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in _messages():
            server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        while json.loads(server.stdout.readline()).get("id") != 2:
            pass
        used = _cpu_seconds(server.pid)
        server.stdin.close()
        server.wait(timeout=10)
    return used


def _messages() -> list[dict[str, object]]:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]


def _cpu_seconds(pid: int) -> float:
    """User and system time of all its threads, to the nanosecond (the tick of /proc/PID/stat is 10 ms)."""
    nanoseconds = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        nanoseconds += int((task / "schedstat").read_text().split()[0])
    return nanoseconds / 1e9


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    used: dict[str, list[float]] = {name: [] for name in SERVERS}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds + 1):
            for name, arguments in SERVERS.items():
                seconds = cpu_of_start(arguments, Path(folder))
                if turn:  # the first round compiles
                    used[name].append(seconds)
    for name, seconds_of in used.items():
        ratios = [mine / bare for mine, bare in zip(seconds_of, used["bare"], strict=True)]
        ratio = f"ratio {statistics.median(ratios):.3f} (goal <= {GOAL})" if name != "bare" else ""
        print(f"{name:26} {statistics.median(seconds_of) * 1000:6.1f} ms CPU, median of {rounds}  {ratio}")


if __name__ == "__main__":
    main()
