from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.queue.conftest import ReadJobs, Refused
from widelane.queue import manifest

HEAD = "default_cmd: python t.py\n"


def test_every_combination_is_a_job_the_last_key_first(jobs: ReadJobs):
    found = list(jobs(HEAD + "grid: {a: [1, 2], b: [x, y]}\n"))
    assert found == ["a1-bx", "a1-by", "a2-bx", "a2-by"]


def test_zipped_keys_go_together_and_with_the_grid(jobs: ReadJobs):
    found = list(jobs(HEAD + "grid: {s: [1, 2]}\nzip: {lr: [0.1, 0.2], wd: [5, 6]}\n"))
    assert found == ["s1-lr0.1-wd5", "s1-lr0.2-wd6", "s2-lr0.1-wd5", "s2-lr0.2-wd6"]


def test_two_groups_of_zipped_keys_are_combined(jobs: ReadJobs):
    assert len(jobs(HEAD + "zip: [{a: [1, 2], b: [3, 4]}, {c: [5, 6], d: [7, 8]}]\n")) == 4


def test_zipped_keys_of_different_length_are_refused(refused: Refused):
    (problem,) = refused(HEAD + "zip: {a: [1, 2], b: [3]}\n")
    assert problem.message == "Values of `zip` go together, but `a` has 2, `b` has 1."


def test_combinations_are_left_out_and_added(jobs: ReadJobs):
    text = HEAD + "grid: {a: [1, 2], b: [3, 4]}\nexclude: [{a: 1, b: [3, 4]}]\ninclude: [{a: 9, b: 9}]\n"
    assert list(jobs(text)) == ["a2-b3", "a2-b4", "a9-b9"]


def test_an_include_alone_is_a_list_of_combinations(jobs: ReadJobs):
    assert list(jobs(HEAD + "include: [{a: 1, b: 2}, {a: 3, b: 4}]\n")) == ["a1-b2", "a3-b4"]


def test_what_is_left_out_must_be_there(refused: Refused):
    problems = refused(HEAD + "grid: {a: [1]}\nexclude: [{a: 2}, {aa: 1}]\n")
    assert [problem.code for problem in problems] == ["no_match", "unknown_key"]


def test_what_is_added_has_every_key(refused: Refused):
    problems = refused(HEAD + "grid: {a: [1], b: [2]}\ninclude: [{a: 2}, {a: 1, c: 1}]\n")
    assert [problem.code for problem in problems] == ["missing_key", "missing_key", "unknown_key"]


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("[3]", ["0", "1", "2"]),
        ("[1, 4]", ["1", "2", "3"]),
        ("[10, 0, -5]", ["10", "5"]),
        ("[0, 0.3, 0.1]", ["0.0", "0.1", "0.2"]),
        ("[5, 5]", []),
    ],
)
def test_a_range_counts_as_pythons_does(read, written: str, values: list[str]):
    text = HEAD + f"phases: [{{name: p, allow_empty: true, grid: {{a: {{range: {written}}}}}}}]\n"
    assert [dict(zip(job.argv[2::2], job.argv[3::2], strict=True))["--a"] for job in read(text).jobs] == values


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7).filter(bool))
def test_ranges_of_whole_numbers_are_pythons(start: int, stop: int, step: int):
    text = HEAD + f"phases: [{{name: p, allow_empty: true, grid: {{a: {{range: [{start}, {stop}, {step}]}}}}}}]\n"
    found = [job.argv[-1] for job in manifest.parse(text).jobs]
    assert found == [str(number) for number in range(start, stop, step)]


def test_a_scalar_is_no_list_of_its_characters(refused: Refused):
    (problem,) = refused(HEAD + "grid:\n  N: abc\n")
    assert (problem.line, problem.column, problem.code) == (3, 6, "wrong_type")
    assert "wants a list of values" in problem.message
    assert problem.fix == "Write `N: [abc]`."


def test_an_empty_list_makes_an_empty_phase_which_must_be_meant(refused: Refused, jobs: ReadJobs):
    text = "phases: [{name: p, grid: {N: []}, template: {cmd: 'a ${N}'}}, {name: q, jobs: [{id: b, cmd: b}]}]"
    (problem,) = refused(text)
    assert problem.code == "empty_phase"
    assert list(jobs(text.replace("name: p,", "name: p, allow_empty: true,"))) == ["b"]


def test_numbers_keep_their_spelling_and_words_stay_words(jobs: ReadJobs):
    text = "grid: {lr: [1e-3, 0.10, 007, 50_000], w: [on]}\ntemplate: {id: 'j${lr}', cmd: 'a ${lr} ${w}'}\n"
    assert [job.argv for job in jobs(text).values()] == [
        ("a", "1e-3", "on"),
        ("a", "0.10", "on"),
        ("a", "007", "on"),
        ("a", "50_000", "on"),
    ]


def test_true_is_a_bare_flag_null_is_none_and_on_is_a_word(jobs: ReadJobs):
    found = jobs("default_cmd: a\ngrid: {flag: [true, null, on]}\n")
    assert [job.argv for job in found.values()] == [("a", "--flag"), ("a",), ("a", "--flag", "on")]
    found = jobs("grid: {flag: [true, null, on]}\ntemplate: {cmd: a, args: {flag: '${flag}'}, id: 'j${flag}'}\n")
    assert {job.id: job.argv for job in found.values()} == {
        "jtrue": ("a", "--flag"),
        "jnull": ("a",),
        "jon": ("a", "--flag", "on"),
    }


def test_an_id_without_a_key_of_the_grid_names_the_key_and_both_combinations(refused: Refused):
    text = "grid: {N: [64, 128], seed: [1]}\ntemplate:\n  id: s${seed}\n  cmd: a ${N} ${seed}\n"
    (problem,) = refused(text)
    assert (problem.line, problem.column, problem.code) == (3, 7, "duplicate_id")
    assert problem.message == (
        "`s1` would be the id of {N: 64, seed: 1} and of {N: 128, seed: 1}: it doesn't name `N`."
    )
    assert "`${N}`" in problem.fix


def test_values_are_put_in_once(jobs: ReadJobs):
    found = jobs("grid: {a: ['${b}'], b: [1]}\ntemplate: {id: x, cmd: 'echo ${a}'}\n")
    assert found["x"].argv == ("echo", "${b}")
