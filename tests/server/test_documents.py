"""docs/mcp.md and the instructions name what the server has, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from mcp.client import Client

from widelane.server.app import INSTRUCTIONS, build
from widelane.tools.desk import Desk

pytestmark = pytest.mark.anyio


@pytest.fixture
def page(repo: Path) -> str:
    return (repo / "docs" / "mcp.md").read_text(encoding="utf-8")


def rows(page: str, heading: str) -> dict[str, str]:
    """First cell (its first code span) to the rest of the row, of the table under a heading."""
    part = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = (re.match(r"\| `([^`]+)`(.*)", line) for line in part.splitlines())
    return {match[1]: match[2] for match in found if match}


async def test_the_tables_of_tools_and_prompts_are_those_of_the_server(desk: Desk, page: str):
    async with Client(build(desk)) as client:
        tools = (await client.list_tools()).tools
        prompts = (await client.list_prompts()).prompts
    documented = rows(page, "Tools")
    assert set(documented) == {tool.name for tool in tools}
    for tool in tools:
        named = set(re.findall(r"`(\w+)`", documented[tool.name].split("|")[1]))
        assert named == set(tool.input_schema["properties"]), tool.name
    documented = rows(page, "Prompts")
    assert set(documented) == {prompt.name for prompt in prompts}
    for prompt in prompts:
        named = set(re.findall(r"`(\w+)`", documented[prompt.name].split("|")[1]))
        assert named == {argument.name for argument in prompt.arguments or ()}, prompt.name


async def test_every_resource_is_documented_and_named_in_the_instructions(desk: Desk, page: str):
    async with Client(build(desk)) as client:
        addresses = {str(resource.uri) for resource in (await client.list_resources()).resources}
        templates = {template.uri_template for template in (await client.list_resource_templates()).resource_templates}
    named = set(re.findall(r"widelane://[\w/{}]+", page))
    assert named == addresses | templates
    assert set(re.findall(r"widelane://[\w/{}]+", INSTRUCTIONS)) == named


def test_the_client_configuration_is_json(page: str):
    (block,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert json.loads(block)["mcpServers"]["widelane"] == {"command": "widelane", "args": ["serve"]}
