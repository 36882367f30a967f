"""plan_width: verdicts on plans of 4 and 10,000 phases in process, and whole calls over stdio against a bare tool.

python benchmarks/plan_width.py [CALLS]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from widelane import facts, plan, router

PLAN = """\
widelane: 1
task: "{task}"
phases:
  - name: generate
    intent: capture-7b
    axes: {{model: 2, draw_set: 10}}
    gpu_hours: 8
    setup_minutes: 8
    width: 8
    min_width: 1
    command: python gen.py --model {{model}} --draws {{draw_set}}
    outputs: ["out/{{model}}/{{draw_set}}.json"]
  - name: tune
    intent: ft-7b
    axes: {{seed: 6}}
    after: [generate]
    gpu_hours: 24
    gpus_per_shard: 4
    setup_minutes: 10
    width: 8
    min_width: 4
    command: torchrun --nproc-per-node 4 train.py --seed {{seed}}
    outputs: ["model/{{seed}}.bin"]
  - name: evaluate
    intent: eval
    axes: {{checkpoint: 6, task: [a, b, c, d]}}
    after: [tune]
    gpu_hours: 3
    setup_minutes: 3
    width: 4
    min_width: 1
    command: python evaluate.py {{checkpoint}} {{task}}
    outputs: ["scores/{{checkpoint}}-{{task}}.json"]
  - name: judge
    gpus: 0
    after: [evaluate]
    wall_minutes: 40
    command: python judge.py
    outputs: [report.md]
"""
MANY = """\
  - name: p{number}
    intent: {intent}
    axes: {{model: 2, draw_set: {size}}}
    gpu_hours: {hours}
    setup_minutes: {setup}
    width: {width}
    min_width: 1
    command: python gen.py --run {number} --model {{model}} --draws {{draw_set}}
    outputs: ["out/{number}/{{model}}/{{draw_set}}.json"]
"""
BARE = """\
from mcp.server import MCPServer
server = MCPServer("bare", version="1", log_level="WARNING")
@server.tool()
def echo(text: str) -> dict[str, int]:
    return {"length": len(text)}
server.run()
"""
IN_PROCESS_MS, STDIO_MS = 0.5, 5.0
PHASES, JUDGE_S, PARSE_S = 10_000, 1.0, 6.0


class Server:
    """A stdio server, asked by plain JSON lines so that the client costs little."""

    def __init__(self, arguments: list[str], folder: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, text=True
        )
        self.number = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        self._send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.number:
                return dict(answer["result"])

    def call(self, tool: str, **arguments: Any) -> float:
        """Milliseconds of one call."""
        start = time.perf_counter()
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        seconds = time.perf_counter() - start
        assert not answer.get("isError"), answer
        return seconds * 1000

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=10)


def in_process(calls: int) -> float:
    """Median milliseconds of the verdict on a parsed plan."""
    bench = router.Bench(
        catalog=facts.catalog(), policy=facts.load_policy(), intents=facts.catalog().intents, lanes=("gcp", "local")
    )
    parsed = plan.parse(PLAN.format(task="bench"))
    router.judge(parsed, bench)
    took: list[float] = []
    for _ in range(calls):
        start = time.perf_counter()
        router.judge(parsed, bench)
        took.append((time.perf_counter() - start) * 1000)
    return statistics.median(took)


def many() -> tuple[float, float]:
    """Seconds to parse a plan of 10,000 phases that all differ, and to judge it; the best of a few."""
    phases = [
        MANY.format(
            number=number,
            intent=("capture-7b", "eval", "lora-7b")[number % 3],
            size=5 + number % 17,
            hours=1 + number % 50,
            setup=number % 9,
            width=(1, 2, 4, 8)[number % 4],
        )
        for number in range(PHASES)
    ]
    text = "widelane: 1\nphases:\n" + "".join(phases)
    start = time.perf_counter()
    parsed = plan.parse(text)
    parsing, took = time.perf_counter() - start, []
    for _ in range(5):
        bench = router.Bench(
            catalog=facts.catalog(), policy=facts.load_policy(), intents=facts.catalog().intents, lanes=("gcp", "local")
        )
        start = time.perf_counter()
        router.judge(parsed, bench)
        took.append(time.perf_counter() - start)
    return parsing, min(took)


def over_stdio(calls: int) -> dict[str, list[float]]:
    """Milliseconds of interleaved calls: a bare tool, a plan that is new each time, a plan that was seen."""
    took: dict[str, list[float]] = {"bare tool": [], "new plan": [], "seen plan": []}
    os.environ.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WIDELANE_HOME"] = str(Path(folder) / "home")
        bare, ours = Server(["-c", BARE], folder), Server(["-m", "widelane.server"], folder)
        for turn in range(calls + 5):
            text = PLAN.format(task=turn)
            rows = {
                "bare tool": bare.call("echo", text=text),
                "new plan": ours.call("plan_width", plan=text),
                "seen plan": ours.call("plan_width", plan=text),
            }
            if turn >= 5:
                for name, milliseconds in rows.items():
                    took[name].append(milliseconds)
        bare.close()
        ours.close()
    return took


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"in process, parsed   {in_process(calls * 5):6.3f} ms (goal <= {IN_PROCESS_MS})")
    parsing, judging = many()
    print(f"{PHASES:,} phases, parsed    {judging:6.3f} s (goal <= {JUDGE_S:g})")
    print(f"{PHASES:,} phases, from text {parsing:6.3f} s to parse (goal <= {PARSE_S:g})")
    took = over_stdio(calls)
    bare = statistics.median(took["bare tool"])
    for name, milliseconds in took.items():
        p50 = statistics.median(milliseconds)
        goal = f" (goal <= {STDIO_MS})" if name == "new plan" else ""
        print(f"over stdio, {name:9} {p50:6.3f} ms p50, {p50 / bare:4.2f} of a bare tool{goal}")


if __name__ == "__main__":
    main()
