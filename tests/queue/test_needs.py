from __future__ import annotations

from tests.queue.conftest import ReadJobs, Refused

TEACHERS = """\
phases:
  - name: teachers
    grid: {N: [64, 128], t: [1, 2]}
    template: {id: 't${N}-${t}', cmd: 'teach ${N} ${t}'}
  - name: students
    needs: [{phase: teachers, match: [N]}]
    grid: {N: [64, 128], seed: [1, 2]}
    template: {id: 's${N}-${seed}', cmd: 'learn ${N} ${seed}'}
"""


def needs(job) -> list[str]:
    return [str(need) for need in job.needs]


def test_a_match_waits_for_the_jobs_with_the_same_values_alone(jobs: ReadJobs):
    found = jobs(TEACHERS)
    assert needs(found["s64-1"]) == needs(found["s64-2"]) == ["t64-1", "t64-2"]
    assert needs(found["s128-1"]) == ["t128-1", "t128-2"]


def test_a_match_that_finds_nothing_is_refused(refused: Refused):
    problems = refused(TEACHERS.replace("{N: [64, 128], seed", "{N: [64, 256], seed"))
    assert {problem.code for problem in problems} == {"no_match"}
    assert problems[0].message == "`s256-1` needs a job of `teachers` with N=256, and there is none."


def test_a_match_names_keys_that_both_have(refused: Refused):
    (problem,) = refused(TEACHERS.replace("match: [N]", "match: [t]"))
    assert problem.code == "unknown_key"
    assert "`students`" in problem.message


def test_a_match_may_be_by_args(jobs: ReadJobs):
    text = TEACHERS.partition("  - name: students")[0] + (
        "  - name: students\n"
        "    jobs: [{id: s, cmd: x, args: {N: 64, t: 2}, needs: [{phase: teachers, match: [N, t]}]}]\n"
    )
    assert needs(jobs(text)["s"]) == ["t64-2"]


def test_needs_are_jobs_or_phases_and_say_which_end_counts(jobs: ReadJobs):
    text = """\
phases:
  - name: a
    jobs: [{id: a1, cmd: x}, {id: a2, cmd: y, needs: a1}]
  - name: b
    jobs:
      - {id: b1, cmd: z, needs: ['phase:a', {job: a2, when: failure}]}
      - {id: b2, cmd: w, needs: [{phase: a, when: finished}]}
"""
    found = jobs(text)
    assert needs(found["a2"]) == ["a1"]
    assert needs(found["b1"]) == ["phase:a", "a2 (failure)"]
    assert needs(found["b2"]) == ["phase:a (finished)"]


def test_a_need_may_name_values(jobs: ReadJobs):
    text = """\
phases:
  - name: a
    grid: {N: [1, 2]}
    template: {id: 'a${N}', cmd: 'x ${N}'}
  - name: b
    grid: {N: [1, 2]}
    template: {id: 'b${N}', cmd: 'y ${N}', needs: ['a${N}']}
"""
    assert needs(jobs(text)["b2"]) == ["a2"]


def test_phases_that_wait_for_each_other_are_shown_with_their_lines(refused: Refused):
    text = """\
phases:
  - name: a
    needs: phase:b
    jobs: [{id: x, cmd: x}]
  - name: b
    depends_on: [a]
    jobs: [{id: y, cmd: y}]
"""
    (problem,) = refused(text)
    assert (problem.line, problem.code) == (2, "cycle")
    assert "a (line 2) -> b (line 5) -> a" in problem.message


def test_jobs_that_wait_for_each_other_are_shown_with_their_lines(refused: Refused):
    text = """\
jobs:
  - {id: x, cmd: x, needs: z}
  - {id: y, cmd: y, needs: x}
  - {id: z, cmd: z, needs: y}
"""
    (problem,) = refused(text)
    assert problem.code == "cycle"
    assert "x (line 2) -> z (line 4) -> y (line 3) -> x" in problem.message


def test_a_job_that_waits_for_its_own_phase_waits_for_ever(refused: Refused):
    (problem,) = refused("phases: [{name: a, jobs: [{id: x, cmd: x, needs: ['phase:a']}]}]")
    assert problem.code == "cycle"


def test_unknown_jobs_and_phases_are_told_with_the_ones_that_were_meant(refused: Refused):
    needed = "[train-s2, 'phase:trian', train]"
    text = f"phases: [{{name: train, jobs: [{{id: train-s1, cmd: x}}, {{id: b, cmd: y, needs: {needed}}}]}}]"
    problems = refused(text)
    assert [(problem.code, problem.fix) for problem in problems] == [
        ("unknown_job", "Did you mean `train-s1`?"),
        ("unknown_phase", "Name a phase of this manifest, or remove it."),
        ("unknown_job", "Write `phase:train` for the phase."),
    ]
