"""The tools as a client sees them, in both eras of the protocol."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import pytest
from mcp.client import Client

from tests.fakes.moves import MovingRuns, attempt, status
from tests.server.conftest import NARROW, PLAN, Connect
from widelane.models.attempt import Outcome
from widelane.models.dispatch import DispatchState
from widelane.server.app import INSTRUCTIONS
from widelane.tools.desk import Desk
from widelane.tools.plan_width import PlanWidthInput, plan_width

pytestmark = pytest.mark.anyio

NAMES = ["plan_width", "quota_check", "dispatch", "dispatch_status", "release"]
SCHEMA_WORDS = {
    *("type", "description", "properties", "required", "additionalProperties", "items", "anyOf", "enum"),
    *("minimum", "maximum", "minLength"),
}


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a call that has to succeed."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content is not None
    return answer.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a call that has to fail."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return "\n".join(part.text for part in answer.content if part.type == "text")


async def test_the_list_is_small_and_says_what_each_tool_is_for(connect: Connect):
    async with connect() as client:
        listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == NAMES
    assert len(listed.model_dump_json(by_alias=True, exclude_none=True)) <= 12_000
    for tool in listed.tools:
        assert tool.title
        assert tool.description
        assert tool.description.startswith("Use it ")
        assert len(tool.description) <= 600
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        assert '"title"' not in json.dumps([tool.input_schema, tool.output_schema])
        assert "$ref" not in json.dumps([tool.input_schema, tool.output_schema])


async def test_schemas_hold_no_word_that_json_schema_does_not_know(connect: Connect):
    async with connect() as client:
        listed = await client.list_tools()
    for tool in listed.tools:
        assert words(tool.input_schema) | words(tool.output_schema or {}) <= SCHEMA_WORDS, tool.name
    waits = {tool.name: tool for tool in listed.tools}["dispatch_status"].input_schema["properties"]["wait_s"]
    assert (waits["minimum"], waits["maximum"]) == (0, 50)


def words(schema: dict[str, Any]) -> set[str]:
    """Every keyword in a schema; names of properties are none."""
    below = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    below += [schema["items"]] if "items" in schema else []
    return set(schema).union(*map(words, below))


async def test_every_tool_says_whether_it_changes_anything(connect: Connect):
    async with connect() as client:
        listed = await client.list_tools()
    hints = {tool.name: tool.annotations for tool in listed.tools}
    assert all(hint is not None and hint.idempotent_hint for hint in hints.values())
    reads = {name for name, hint in hints.items() if hint and hint.read_only_hint}
    assert reads == {"plan_width", "quota_check", "dispatch_status"}
    assert [name for name, hint in hints.items() if hint and hint.destructive_hint] == ["release"]


async def test_the_server_says_who_it_is(connect: Connect):
    async with connect() as client:
        assert client.server_info is not None
        assert client.server_info.name == "widelane"
        assert client.server_info.version
        assert client.instructions == INSTRUCTIONS
    assert len(INSTRUCTIONS) <= 1500


async def test_a_plan_is_judged_and_the_answer_stands_alone(connect: Connect, desk: Desk):
    async with connect() as client:
        answer = await client.call_tool("plan_width", {"plan": PLAN})
    assert answer.structured_content == plan_width(PlanWidthInput(plan=PLAN), desk).model_dump(mode="json")
    assert [json.loads(part.text) for part in answer.content if part.type == "text"] == [answer.structured_content]
    assert answer.structured_content["verdict"] == "PASS"


async def test_a_refused_plan_is_an_answer_not_an_error(connect: Connect):
    async with connect() as client:
        judged = await call(client, "plan_width", plan=NARROW)
    assert judged["verdict"] == "REVISE"
    codes = [finding["code"] for phase in judged["phases"] for finding in phase["findings"]]
    assert "needlessly_narrow" in codes


async def test_a_plan_may_come_as_a_path_from_the_working_folder(connect: Connect, tmp_path: Path):
    (tmp_path / "plan.yaml").write_text(PLAN)
    async with connect() as client:
        by_path = await call(client, "plan_width", plan_path="plan.yaml")
        by_text = await call(client, "plan_width", plan=PLAN, plan_path=None)
    assert by_path["plan_digest"] == by_text["plan_digest"]


async def test_a_plan_that_a_host_has_parsed_is_taken(connect: Connect):
    phase = {"name": "a", "intent": "debug", "axes": "none", "why": "one run", "gpu_hours": 1, "command": "run"}
    async with connect() as client:
        judged = await call(client, "plan_width", plan={"widelane": 1, "phases": [phase]})
    assert judged["phases"][0]["name"] == "a"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("plan_width", {}, ["no plan was given", "Next:"]),
        ("plan_width", {"plan": PLAN, "plan_path": "x"}, ["both given"]),
        ("plan_width", {"plan": "phases: ["}, ["bad_plan", "<argument>:"]),
        ("plan_width", {"plan_path": "none.yaml"}, ["none.yaml", "no such file"]),
        ("plan_width", {"plann": PLAN}, ["'plann'", "plan, plan_path"]),
        ("dispatch", {"plan": PLAN, "phase": "judge"}, ["'judge'", "generate"]),
        ("dispatch", {"plan": PLAN, "plan_digest": "0" * 12}, ["stale_plan", "nothing was created", "plan_width"]),
        ("dispatch", {"plan": PLAN, "fresh": "perhaps"}, ["bad_arguments", "fresh"]),
        ("dispatch_status", {}, ["run_id is missing"]),
        ("dispatch_status", {"run_id": "r2"}, ["not_found", "r2", "Next:"]),
        ("dispatch_status", {"run_id": "r1", "wait_s": 51}, ["wait_s", "50"]),
        ("dispatch_status", {"run_id": "r1", "wait_s": -1}, ["wait_s"]),
        ("release", {"run_id": "r2"}, ["not_found"]),
        ("quota_check", {}, ["width", "intent"]),
        ("quota_check", {"width": 8}, ["intent"]),
        ("dispach", {}, ["dispach"]),
    ],
)
async def test_what_is_wrong_is_said_with_the_next_step(
    connect: Connect, runs: MovingRuns, tool: str, arguments: dict[str, Any], words: list[str]
):
    async with connect() as client:
        text = await refusal(client, tool, **arguments)
    assert not [word for word in words if word not in text], text
    assert len(text) < 800
    assert "pydantic" not in text
    assert "Traceback" not in text
    assert not runs.submitted


async def test_a_very_long_list_of_problems_is_cut(connect: Connect):
    plan = "widelane: 1\nphases:\n" + "".join(f"  - {{name: p{n}, gpu_hourz: 1}}\n" for n in range(300))
    async with connect() as client:
        text = await refusal(client, "plan_width", plan=plan)
    assert len(text) < 5000
    assert "more problems" in text


async def test_without_a_digest_nothing_starts(connect: Connect, runs: MovingRuns):
    async with connect() as client:
        dry = await call(client, "dispatch", plan=PLAN)
    assert (dry["started"], dry["reason"], dry["run_id"]) == (False, "dry_run", None)
    assert dry["plan"]["phases"][0]["ladder"]
    assert dry["plan_digest"] in dry["next_step"]
    assert not runs.submitted


async def test_a_plan_to_revise_never_starts_whatever_digest_comes_with_it(connect: Connect, runs: MovingRuns):
    async with connect() as client:
        judged = await call(client, "plan_width", plan=NARROW)
        answer = await call(client, "dispatch", plan=NARROW, plan_digest=judged["plan_digest"])
    assert (answer["started"], answer["reason"]) == (False, "plan_revise")
    assert answer["plan"]["phases"][0]["findings"]
    assert not runs.submitted


async def test_the_digest_of_the_plan_starts_it(connect: Connect, runs: MovingRuns):
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with connect() as client:
        judged = await call(client, "plan_width", plan=PLAN)
        answer = await client.call_tool(
            "dispatch",
            {"plan": PLAN, "plan_digest": judged["plan_digest"], "phase": "generate", "fresh": True},
            progress_callback=hear,
        )
    assert answer.structured_content is not None
    assert answer.structured_content["run_id"] == "r1"
    assert runs.submitted == [(judged["plan_digest"], "generate", True)]
    assert [progress for progress, _, _ in told] == [1, 2]


async def test_waiting_ends_when_the_state_changes_and_tells_progress_that_only_grows(
    connect: Connect, runs: MovingRuns
):
    missed = [attempt(Outcome.CAPACITY), attempt(Outcome.CAPACITY, width=4)]
    runs.moves = [
        status(DispatchState.WALKING),
        status(DispatchState.WALKING, attempts=missed[:1], seq=1),
        status(DispatchState.WALKING, attempts=missed, seq=2),
        status(DispatchState.RUNNING, attempts=[*missed, attempt(Outcome.GRANTED, width=2)], width=2, done=3, seq=3),
        status(DispatchState.SUCCEEDED, done=20, seq=4),
    ]
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with connect() as client:
        answer = await client.call_tool("dispatch_status", {"run_id": "r1", "wait_s": 40}, progress_callback=hear)
    assert answer.structured_content is not None
    assert answer.structured_content["state"] == "running"
    values = [progress for progress, _, _ in told]
    assert values == sorted(set(values))
    assert values == [0.5, pytest.approx(2 / 3), 4]
    assert {total for _, total, _ in told} == {21}
    assert [after for _, after in runs.waited] == [0, 1, 2]
    assert all(seconds <= 1 for seconds, _ in runs.waited)
    assert ["1 rung tried" in str(told[0][2]), "2 rungs tried" in str(told[1][2])] == [True, True]


async def test_waiting_on_a_run_that_has_ended_returns_at_once(connect: Connect, runs: MovingRuns):
    runs.moves = [status(DispatchState.SUCCEEDED, done=20)]
    async with connect() as client:
        found = await call(client, "dispatch_status", run_id="r1", wait_s=50)
    assert found["state"] == "succeeded"
    assert runs.waited == []


async def test_a_look_without_wait_asks_once(connect: Connect, runs: MovingRuns):
    async with connect() as client:
        await call(client, "dispatch_status", run_id="r1")
    assert runs.seen == ["r1"]


async def test_release_asks_once_and_answers_with_the_run(connect: Connect, runs: MovingRuns):
    async with connect() as client:
        found = await call(client, "release", run_id="r1")
    assert found["run_id"] == "r1"
    assert runs.released == ["r1"]


async def test_tools_that_say_that_they_only_read_write_nothing(
    connect: Connect, tmp_path: Path, own_world: Path, runs: MovingRuns
):
    (tmp_path / "plan.yaml").write_text(PLAN)

    def files() -> dict[Path, int]:
        found = [path for root in (tmp_path, own_world) for path in root.rglob("*")]
        return {path: path.stat().st_mtime_ns for path in found}

    before = files()
    async with connect() as client:
        await call(client, "plan_width", plan_path="plan.yaml")
        await client.call_tool("quota_check", {"plan_path": "plan.yaml"})
        await call(client, "dispatch_status", run_id="r1")
        await call(client, "dispatch", plan_path="plan.yaml")
    assert files() == before
    assert not runs.submitted
    assert not runs.released


async def test_two_hundred_calls_at_once_are_all_answered(connect: Connect):
    answers: list[str] = []

    async with connect() as client:

        async def ask(number: int) -> None:
            judged = await call(client, "plan_width", plan=PLAN.replace("1121", str(number)))
            answers.append(judged["plan_digest"])

        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(ask, number)
    assert len(set(answers)) == 200


async def test_waits_do_not_keep_other_calls_from_being_answered(connect: Connect, runs: MovingRuns):
    runs.gate = Event()

    async with connect() as client:

        async def wait() -> None:
            found = await call(client, "dispatch_status", run_id="r1", wait_s=50)
            assert found["state"] == "cancelled"

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(60):
                    group.start_soon(wait)
                await call(client, "plan_width", plan=PLAN)
                assert len(runs.waited) < 60
                runs.moves = [status(DispatchState.CANCELLED)]
                runs.gate.set()
