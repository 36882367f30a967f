"""Prompts and resources as a client sees them, in both eras of the protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from tests.server.conftest import NARROW, PLAN, Connect

pytestmark = pytest.mark.anyio

PAGES = {"planner": "widelane://prompts/planner", "efficiency_critic": "widelane://prompts/efficiency_critic"}


def text_of(message: Any) -> str:
    content = getattr(message, "content", message)
    return str(content.text)


async def test_both_prompts_are_listed_with_optional_arguments(connect: Connect):
    async with connect() as client:
        listed = (await client.list_prompts()).prompts
    found = {prompt.name: [argument.name for argument in prompt.arguments or ()] for prompt in listed}
    assert found == {"planner": ["plan", "phase"], "efficiency_critic": ["plan", "phase", "lens"]}
    assert not [argument for prompt in listed for argument in prompt.arguments or () if argument.required]
    assert all(prompt.description for prompt in listed)


async def test_each_prompt_is_a_resource_too(connect: Connect):
    async with connect() as client:
        for name, address in PAGES.items():
            prompt = await client.get_prompt(name)
            page = await client.read_resource(address)
            assert text_of(page.contents[0]) == text_of(prompt.messages[0])
            assert page.contents[0].mime_type == "text/markdown"


async def test_the_critic_carries_what_the_engine_found(connect: Connect, tmp_path: Path):
    (tmp_path / "plan.yaml").write_text(NARROW)
    async with connect() as client:
        by_path = await client.get_prompt("efficiency_critic", {"plan": "plan.yaml", "phase": "generate"})
        by_text = await client.get_prompt("efficiency_critic", {"plan": NARROW})
    for prompt in (by_path, by_text):
        assert "REVISE" in text_of(prompt.messages[0])
        assert "`needlessly_narrow` (line" in text_of(prompt.messages[0])


async def test_a_lens_leaves_the_others_out(connect: Connect):
    async with connect() as client:
        whole = text_of((await client.get_prompt("efficiency_critic")).messages[0])
        part = text_of((await client.get_prompt("efficiency_critic", {"lens": "work"})).messages[0])
    assert "### Width" in whole
    assert "### Width" not in part
    assert "### Work" in part


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("critic", {}, "planner, efficiency_critic"),
        ("planner", {"lens": "width"}, "plan, phase"),
        ("planner", {"phase": "generate"}, "without a plan"),
        ("planner", {"plan": PLAN, "phase": "judge"}, "generate"),
        ("planner", {"plan": "none.yaml"}, "none.yaml"),
        ("efficiency_critic", {"lens": "cost"}, "width, work, estimate"),
    ],
)
async def test_a_prompt_that_cannot_be_given_says_why(
    connect: Connect, name: str, arguments: dict[str, str], words: str
):
    async with connect() as client:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt(name, arguments)
    assert refused.value.error.code == INVALID_PARAMS
    assert words in refused.value.error.message


async def test_policy_ladders_machines_and_runs_can_be_read(connect: Connect):
    async with connect() as client:
        listed = {str(resource.uri): resource for resource in (await client.list_resources()).resources}
        assert set(PAGES.values()) < set(listed)
        assert all(resource.description and resource.mime_type for resource in listed.values())
        read = {}
        for name in ("policy", "ladder", "catalog", "runs"):
            page = await client.read_resource(f"widelane://{name}")
            assert page.contents[0].mime_type == "application/json"
            read[name] = json.loads(text_of(page.contents[0]))
    assert read["policy"]["values"]["widths"]["value"] == [8, 4, 2, 1]
    assert read["ladder"]["capture-7b"]["8 long"][0] == "gcp FLEX_START a2-ultragpu-8g"
    assert read["catalog"]["machine_types"]["a2-ultragpu-8g"]["gpus"] == 8
    assert read["runs"][0]["run_id"] == "r1"


async def test_a_run_is_a_resource_and_an_unknown_one_is_not_found(connect: Connect):
    async with connect() as client:
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == ["widelane://runs/{run_id}"]
        run = await client.read_resource("widelane://runs/r1")
        assert json.loads(text_of(run.contents[0]))["run_id"] == "r1"
        for address in ("widelane://runs/r2", "widelane://nothing", "widelane://runs/..%2Fsecret"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(address)
            assert refused.value.error.code == INVALID_PARAMS
