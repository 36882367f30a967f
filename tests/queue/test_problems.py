from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.queue.conftest import ReadJobs, Refused
from widelane.errors import PlanError
from widelane.queue import manifest


def test_everything_wrong_is_told_at_once_with_its_place(refused: Refused):
    text = """\
projct: demo
gpus: all
jobs:
  - id: a/b
    cmd: x && y
  - id: c
    cmd: run ${x}
    timeout: soon
    retry: {exits: 1}
"""
    problems = refused(text)
    assert [(problem.line, problem.column, problem.code) for problem in problems] == [
        (1, 1, "unknown_key"),
        (2, 7, "wrong_type"),
        (4, 9, "bad_id"),
        (5, 10, "shell_syntax"),
        (7, 14, "unknown_name"),
        (8, 14, "wrong_type"),
        (9, 13, "unknown_key"),
    ]
    assert problems[0].fix == "Did you mean `project`?"
    assert str(problems[0]).startswith("m.yaml:1:1: ")


@pytest.mark.parametrize(
    "ident", ["a/b", "x$(mkdir gone)", "a b", ".a", "-a", "é", "a" * 129, "a\nb", "a'b", "${job.attempt}"]
)
def test_an_id_that_could_be_more_than_a_name_is_refused(refused: Refused, ident: str):
    quoted = '"' + ident.replace("\n", "\\n").replace('"', '\\"') + '"'
    problems = refused(f"jobs: [{{id: {quoted}, cmd: x}}]")
    assert {problem.code for problem in problems} <= {"bad_id", "unknown_name"}


@pytest.mark.parametrize("ident", ["s1", "s10", "a.b", "a_b", "lr=1e-3", "a+b", "0", "A" * 128, "N64-x=-1"])
def test_every_character_of_an_id_is_itself(jobs: ReadJobs, ident: str):
    assert list(jobs(f"jobs: [{{id: '{ident}', cmd: x}}]")) == [ident]


@given(st.text(max_size=20))
def test_any_text_as_a_value_gives_an_id_that_is_one_or_a_refusal(value: str):
    quoted = "'" + value.replace("'", "''") + "'"
    try:
        (job,) = manifest.parse(f"default_cmd: a\ngrid: {{k: [{quoted}]}}\n").jobs
    except PlanError:
        return
    assert manifest_id(job.id)


def manifest_id(ident: str) -> bool:
    return (
        ident[0].isalnum() and len(ident) <= 128 and all(c.isascii() and (c.isalnum() or c in "._=+-") for c in ident)
    )


def test_an_id_that_is_there_twice_names_both_places(refused: Refused):
    problems = refused("jobs:\n  - {id: a, cmd: x}\n  - {id: b, cmd: y}\n  - {id: a, cmd: z}\n")
    assert [(problem.line, problem.code) for problem in problems] == [(4, "duplicate_id")]
    assert "line 2" in problems[0].message


def test_thousands_of_the_same_mistake_are_told_shortly(refused: Refused):
    text = "jobs:\n" + "  - {id: a, cmd: x}\n" * 5000
    problems = refused(text)
    assert len(problems) == 21
    assert problems[0].message == "4,979 more ids are there twice."


def test_the_same_work_under_two_ids_is_a_warning():
    read = manifest.parse("jobs:\n  - {id: a, cmd: x}\n  - {id: b, cmd: x}\n")
    (warning,) = read.warnings
    assert (warning.line, warning.code, warning.message) == (3, "equal_jobs", "`b` is the same work as `a`.")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_manifest"),
        ("just words", "no_manifest"),
        ("- a\n- b\n", "no_manifest"),
        ("project: demo\n", "no_jobs"),
        ("jobs: []\n", "no_jobs"),
        ("phases: []\n", "bad_value"),
        ("jobs: [{id: a, cmd: x}]\nphases: [{name: p, jobs: []}]\n", "contradiction"),
        ("jobs: [{id: a, cmd: x}]\ngrid: {a: [1]}\n", "contradiction"),
        ("host: local\nssh: box\njobs: [{id: a, cmd: x}]\n", "contradiction"),
        ("jobs: [{id: a, cmd: x}\n", "bad_yaml"),
        ("jobs: [{id: a, cmd: \x07}]\n", "bad_character"),
        ("jobs: [{id: a, cmd: x, gpus: -1}]\n", "wrong_type"),
        ("jobs: [{id: a, cmd: x, preconditions: [{type: file}]}]\n", "missing_key"),
        ("jobs: [{id: a, cmd: x, preconditions: [{type: fil, path: x}]}]\n", "wrong_type"),
        ("jobs: [{id: a, cmd: x, preconditions: [{type: file, path: x, gib: 3}]}]\n", "unknown_key"),
        ("jobs: [{id: a, cmd: x, shell: true, cmd: [a]}]\n", "duplicate_key"),
        ("jobs: [{id: a, cmd: [a], shell: true}]\n", "contradiction"),
        ("jobs: [{id: a, cmd: x, env: {CUDA_VISIBLE_DEVICES: 3}}]\n", "bad_name"),
    ],
)
def test_what_is_no_manifest_is_refused(refused: Refused, text: str, code: str):
    assert code in [problem.code for problem in refused(text)]


def test_a_file_that_is_no_utf8_is_refused_at_its_byte(tmp_path):
    file = tmp_path / "m.yaml"
    file.write_bytes("jobs:\n  - {id: a, cmd: é}\n".encode("latin-1"))
    with pytest.raises(PlanError) as caught:
        manifest.read(file)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.code) == (2, 18, "not_text")


def test_a_file_that_is_not_there_is_told_with_the_one_that_is(tmp_path):
    (tmp_path / "sweep.yaml").touch()
    with pytest.raises(PlanError) as caught:
        manifest.read(tmp_path / "swep.yaml")
    assert "sweep.yaml" in caught.value.problems[0].fix


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str):
    try:
        manifest.parse(text)
    except PlanError as refusal:
        assert refusal.problems


def test_more_jobs_than_a_run_can_have_are_counted_and_refused(refused: Refused):
    (problem,) = refused("default_cmd: a\ngrid: {a: {range: [1000]}, b: {range: [1000]}}\n")
    assert (problem.code, problem.message) == ("too_many_jobs", "This grid has 1,000,000 combinations.")


@pytest.mark.slow
def test_a_hundred_thousand_jobs_are_read():
    read = manifest.parse("default_cmd: a\ngrid: {a: {range: [100]}, b: {range: [1000]}}\n")
    assert len(read.jobs) == 100_000
    assert read.jobs[-1].id == "a99-b999"
