from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.queue.conftest import ReadJobs, Refused
from widelane.queue import manifest


def one(text: str):
    (job,) = manifest.parse(text).jobs
    return job


@pytest.mark.parametrize("value", ["a b", "x$(touch gone)", "it's", 'say "x"', "-n", "*", "a;b", ""])
def test_a_value_is_one_word_whatever_is_in_it(value: str):
    quoted = "'" + value.replace("'", "''") + "'"
    assert one(f"jobs: [{{id: a, cmd: 'run --x ${{v}}', args: {{v: {quoted}}}}}]").argv == (
        "run",
        "--x",
        value,
        "--v",
        value,
    )


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12))
def test_in_a_shells_text_a_value_stays_one_word_wherever_it_stands(value: str):
    quoted = "'" + value.replace("'", "''") + "'"
    text = f"""\
include: [{{v: {quoted}}}]
template:
  id: a
  shell: true
  cmd: |
    printf '%s\\n' ${{v}} "${{v}}" '${{v}}' "a ${{v}} b" && true
"""
    argv = [str(word) for word in one(text).argv]
    assert argv[:2] == ["bash", "-c"]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert shown == f"{value}\n{value}\n{value}\na {value} b\n"


@pytest.mark.parametrize(
    ("command", "sign"),
    [
        ("cd x && python y.py", "&&"),
        ("a; b", ";"),
        ("a | tee log", "|"),
        ("a > log 2>&1", ">"),
        ("a $HOME", "$HOME"),
        ('a "$HOME/x"', "$HOME"),
        ("a $(date)", "$("),
        ("a `date`", "`"),
    ],
)
def test_what_only_a_shell_does_is_refused_with_the_key_that_allows_it(refused: Refused, command: str, sign: str):
    (problem,) = refused(f"jobs:\n  - id: a\n    cmd: {shlex.quote(command)}\n")
    assert (problem.line, problem.column, problem.code) == (3, 10, "shell_syntax")
    assert f"`{sign}`" in problem.message
    assert "shell: true" in problem.fix


def test_a_shells_text_may_have_all_of_it():
    job = one("jobs: [{id: a, shell: true, cmd: 'cd x && python y > log'}]")
    assert job.argv == ("bash", "-c", "cd x && python y > log")


def test_args_reach_a_shells_text_as_its_own_arguments():
    job = one("jobs: [{id: a, shell: true, cmd: 'true && printf %s', args: {x: 'a b'}}]")
    assert job.argv == ("bash", "-c", 'true && printf %s "$@"', "bash", "--x", "a b")


def test_quotes_hold_operators_together():
    assert one("""jobs: [{id: a, cmd: "echo 'a && b' c\\\\;d"}]""").argv == ("echo", "a && b", "c;d")


def test_a_list_of_words_is_taken_as_it_is():
    assert one("jobs: [{id: a, cmd: [echo, a && b, 1e-3]}]").argv == ("echo", "a && b", "1e-3")


def test_variables_before_a_command_are_its_environment():
    job = one("jobs: [{id: a, cmd: 'A=1 B=${x} CUDA_VISIBLE_DEVICES=3 python x.py', args: {x: 2}}]")
    assert job.argv[:2] == ("python", "x.py")
    assert job.extras["env"] == {"A": "1", "B": "2"}


def test_a_home_folder_is_the_hosts():
    assert [str(word) for word in one("jobs: [{id: a, cmd: 'python ~/x.py'}]").argv] == ["python", "${env:HOME}/x.py"]


def test_a_doubled_dollar_is_one():
    assert one("jobs: [{id: a, cmd: 'echo $${HOME} $$'}]").argv == ("echo", "${HOME}", "$")


def test_a_misspelt_name_is_told_where_it_stands(refused: Refused):
    text = """\
grid: {n_hidden: [1]}
template:
  id: a${n_hidden}
  cmd: >
    python x.py --ok ${n_hidden}
    --n ${n_hiden}
"""
    (problem,) = refused(text)
    assert (problem.line, problem.column, problem.code) == (6, 9, "unknown_name")
    assert problem.fix == "Did you mean `n_hidden`?"


def test_a_shells_variable_is_told_how_it_is_written(refused: Refused):
    (problem,) = refused("jobs: [{id: a, cmd: 'x ${CONFIG_DIR}'}]")
    assert (
        problem.fix == "Write `${env:CONFIG_DIR}` for a variable of the host, or `$${CONFIG_DIR}` for the text itself."
    )


def test_names_are_filled_in_without_a_grid_too(jobs: ReadJobs):
    job = jobs("jobs: [{id: a, cmd: 'x ${seed}', args: {seed: 3}, outputs: 'o/${job.id}-${seed}'}]")["a"]
    assert job.argv == ("x", "3", "--seed", "3")
    assert job.extras["outputs"] == ["o/a-3"]


def test_lists_in_args_are_written_in_the_declared_style():
    def argv(style: str):
        return one(f"jobs: [{{id: a, cmd: x, args: {{k: [1, 2]}}, arg_lists: {style}}}]").argv

    assert argv("repeat") == ("x", "--k", "1", "--k", "2")
    assert argv("comma") == ("x", "--k", "1,2")
    assert argv("space") == ("x", "--k", "1", "2")


def test_a_key_of_args_is_written_as_it_is():
    assert one("jobs: [{id: a, cmd: x, args: {-n: 5, n_h: 1, a-b: 2}}]").argv == (
        *("x", "-n", "5", "--n_h", "1", "--a-b", "2"),
    )


def test_a_job_without_any_command_is_refused(refused: Refused):
    (problem,) = refused("jobs: [{id: a, args: {x: 1}}]")
    assert problem.code == "missing_key"


def test_an_open_quote_is_refused(refused: Refused):
    (problem,) = refused("""jobs: [{id: a, cmd: "echo 'a"}]""")
    assert problem.code == "open_quote"
