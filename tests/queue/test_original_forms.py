"""Manifests of the three forms that were documented before run as they are."""

from __future__ import annotations

from tests.queue.conftest import ReadJobs, Refused
from widelane.queue import manifest

JOBS_FORM = """\
project: distill
cwd: ~/distill
conda: dllm
conda_hook: /opt/conda/bin/conda
ssh: gpu-server
default_cmd: >
  python run_distill.py
  --backbone softmax --lam 0.5
preconditions:
  - type: checkpoint_exists
    path: checkpoints/tf_N{n_hidden}_s${seed}.pt
gpus: [0, 1, 2, 3]
max_parallel: 4
gpu_free_threshold_mib: 500
oom_retry:
  delay: 120
  max_attempts: 3
analyze_on_complete: true
jobs:
  - id: s200_N64
    args: {seed: 200, n_hidden: 64, lr: 1e-3}
    expected_output: figures/s200_N64.json
  - id: s201_N64
    args:
      seed: 201
      n_hidden: 64
"""

PHASE_FORM = """\
project: distill
phases:
  - name: train_teachers
    grid:
      N: [384, 512]
    template:
      id: "teacher_N${N}"
      cmd: >
        python train.py --n ${N}
      expected_output: "checkpoints/tf_N${N}.pt"
  - name: distill
    depends_on: train_teachers
    grid:
      N: [384, 512]
      seed: [42, 200]
    template:
      id: d_N${N}_s${seed}
      cmd: CUDA_VISIBLE_DEVICES=${GPU} python distill.py --n ${N}
      args: {seed: ${seed}}
      output_check: figures/N${N}_s${seed}.json
"""


def test_jobs_are_the_default_command_with_their_args_behind_it(jobs: ReadJobs):
    found = jobs(JOBS_FORM)
    head = ("python", "run_distill.py", "--backbone", "softmax", "--lam", "0.5")
    assert found["s200_N64"].argv == (*head, "--seed", "200", "--n_hidden", "64", "--lr", "1e-3")
    assert found["s201_N64"].argv == (*head, "--seed", "201", "--n_hidden", "64")


def test_a_precondition_is_each_jobs_own_in_both_spellings_of_a_name(jobs: ReadJobs):
    found = jobs(JOBS_FORM)
    assert found["s200_N64"].extras["preconditions"] == [{"kind": "file", "path": "checkpoints/tf_N64_s200.pt"}]
    assert found["s201_N64"].extras["preconditions"] == [{"kind": "file", "path": "checkpoints/tf_N64_s201.pt"}]


def test_every_documented_field_reaches_the_host():
    read = manifest.parse(JOBS_FORM)
    assert (read.project, read.lane, read.header.cwd) == ("distill", "ssh:gpu-server", "~/distill")
    assert (read.header.conda, read.header.conda_hook) == ("dllm", "/opt/conda/bin/conda")
    spec = read.header.spec
    assert (spec["gpus"], spec["max_parallel"], spec["gpu_free_mib"]) == ([0, 1, 2, 3], 4, 500)
    assert spec["defaults"]["oom_retry"] == {"delay": 120, "max_attempts": 3}
    assert read.jobs[0].extras["outputs"] == ["figures/s200_N64.json"]


def test_phases_have_their_grids_and_wait_for_one_another(jobs: ReadJobs):
    found = jobs(PHASE_FORM)
    students = {f"d_N{n}_s{seed}" for n in (384, 512) for seed in (42, 200)}
    assert set(found) == {"teacher_N384", "teacher_N512"} | students
    assert [str(need) for need in found["d_N384_s42"].needs] == ["phase:train_teachers"]
    assert found["teacher_N384"].needs == ()
    assert found["d_N512_s200"].extras["outputs"] == ["figures/N512_s200.json"]


def test_a_folded_command_has_no_line_break_left(jobs: ReadJobs):
    assert jobs(PHASE_FORM)["teacher_N384"].argv == ("python", "train.py", "--n", "384")


def test_a_placeholder_in_a_flow_mapping_is_read_as_it_is_documented(jobs: ReadJobs):
    assert jobs(PHASE_FORM)["d_N384_s42"].argv[-2:] == ("--seed", "42")


def test_the_cards_that_a_command_sets_to_its_own_are_set_anyway(jobs: ReadJobs):
    assert jobs(PHASE_FORM)["d_N384_s42"].argv[:2] == ("python", "distill.py")
    assert "env" not in jobs(PHASE_FORM)["d_N384_s42"].extras


def test_the_card_is_left_to_the_host(jobs: ReadJobs):
    job = jobs("jobs: [{id: a, cmd: 'python x.py --device ${GPU} --home ${env:HOME}'}]")["a"]
    assert [str(word) for word in job.argv] == ["python", "x.py", "--device", "${GPU}", "--home", "${env:HOME}"]


def test_a_grid_without_template_runs_the_default_command(jobs: ReadJobs):
    found = jobs("default_cmd: python t.py\ngrid: {N: [64, 128], lr: [1e-3]}\n")
    assert found["N64-lr1e-3"].argv == ("python", "t.py", "--N", "64", "--lr", "1e-3")
    assert len(found) == 2


def test_a_template_without_id_gets_one_made_of_its_values(jobs: ReadJobs):
    text = "phases: [{name: t, grid: {model: [org/m], x: [-1, 0.5]}, template: {cmd: 'a ${model} ${x}'}}]"
    assert list(jobs(text)) == ["t-modelorg-m-x=-1", "t-modelorg-m-x0.5"]


def test_an_unknown_phase_is_told_with_the_one_that_was_meant(refused: Refused):
    text = PHASE_FORM.replace("depends_on: train_teachers", "depends_on: train_teacher")
    (problem,) = refused(text)
    assert (problem.line, problem.column, problem.code) == (12, 17, "unknown_phase")
    assert problem.fix == "Did you mean `train_teachers`?"
