"""Answers as people copy them from a terminal or a log, and what is no answer at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widelane.errors import InputError
from widelane.lanes.pasted.judge import KINDS, judge
from widelane.models.attempt import Outcome, Scope

STOCKOUT = """\
ERROR: (gcloud.compute.instances.create) Could not fetch resource:
 - The zone 'projects/p/zones/us-central1-a' does not have enough resources available to fulfill the request.
"""
OPERATION_YAML = """\
error:
  errors:
  - code: QUOTA_EXCEEDED
    message: 'Quota ''NVIDIA_A100_80GB_GPUS'' exceeded.  Limit: 8.0 in region us-central1.'
status: DONE
"""
CURL = (
    'HTTP/2 503 \r\ncontent-type: application/json\r\n\r\n{"error": {"code": 503, "message": "backend", "errors": []}}'
)
FORBIDDEN = """\
google.api_core.exceptions.Forbidden: 403 POST https://compute.googleapis.com/x: \
Required 'compute.instances.create' permission for 'projects/p'
"""
SCONTROL = """\
JobId=41 JobName=wl-a1
   UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A
   JobState=FAILED Reason=NonZeroExitCode Dependency=(null)
   Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=1:0
   DerivedExitCode=0:125
"""
SQUEUE = """\
             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)
                57      main    wl-a1      ada PD       0:00      1 (QOSMaxGRESPerUser)
"""
SACCT = "57|wl-a1|main|lab|8|OUT_OF_MEMORY|0:125\n"
STEPD = "slurmstepd-gpu3: error: *** JOB 30 ON gpu3 CANCELLED AT 2026-11-30T20:07:53 DUE TO TIME LIMIT ***\n"


@pytest.mark.parametrize(
    ("lane", "text", "outcome", "scope"),
    [
        ("gcp", STOCKOUT, Outcome.CAPACITY, Scope.ZONE),
        ("gcp", OPERATION_YAML, Outcome.QUOTA, Scope.REGION),
        ("gcp", CURL, Outcome.TRANSIENT, Scope.INSTANCE),
        ("gcp", "code: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", Outcome.CAPACITY, Scope.ZONE),
        ("gcp", "requests.exceptions.ReadTimeout: timed out", Outcome.TRANSIENT, Scope.INSTANCE),
        (
            "gcp",
            FORBIDDEN,
            Outcome.PERMISSION,
            Scope.PROJECT,
        ),
        ("gcp", "HTTP/1.1 502 Bad Gateway\n\n<html>502</html>", Outcome.TRANSIENT, Scope.INSTANCE),
        ("gcp", "the moon is in the wrong house", Outcome.UNKNOWN, Scope.RUNG),
        ("slurm", SCONTROL, Outcome.WORKLOAD, Scope.INSTANCE),
        ("slurm.lab", SQUEUE, Outcome.QUOTA, Scope.RUNG),
        ("slurm", SACCT, Outcome.WORKLOAD, Scope.INSTANCE),
        ("slurm", "57 wl-a1 main lab 8 OUT_OF_ME+ 0:125", Outcome.WORKLOAD, Scope.INSTANCE),
        ("slurm", STEPD, Outcome.WORKLOAD, Scope.INSTANCE),
        ("slurm", "(Resources)", Outcome.CAPACITY, Scope.RUNG),
        ("slurm", "NODE_FAIL", Outcome.TRANSIENT, Scope.INSTANCE),
        ("slurm", "rc=255 sbatch: unrecognized option '--gras=gpu:1'", Outcome.CONFIG, Scope.LANE),
        ("slurm", "what is this", Outcome.UNKNOWN, Scope.RUNG),
        ("runpod", "insufficient balance", Outcome.QUOTA, Scope.LANE),
        ("runpod", "HTTP/1.1 503 Service Unavailable\n\n<html></html>", Outcome.TRANSIENT, Scope.INSTANCE),
        ("runpod", "requests.exceptions.ConnectionError: reset", Outcome.TRANSIENT, Scope.INSTANCE),
        ("runpod", "something else entirely", Outcome.UNKNOWN, Scope.RUNG),
        ("ssh", "ssh: connect to host 10.0.0.1 port 22: Connection refused", Outcome.TRANSIENT, Scope.INSTANCE),
        ("ssh.box", "rc=255", Outcome.TRANSIENT, Scope.INSTANCE),
        ("ssh", "rc=3 Traceback", Outcome.WORKLOAD, Scope.INSTANCE),
        ("ssh", "what is this", Outcome.UNKNOWN, Scope.LANE),
        ("local", "rc=137 Out of memory: Killed process 7", Outcome.WORKLOAD, Scope.INSTANCE),
        ("local", "what is this", Outcome.UNKNOWN, Scope.LANE),
    ],
)
def test_what_a_terminal_shows_is_judged(lane: str, text: str, outcome: Outcome, scope: Scope) -> None:
    found = judge(lane, text.encode())
    assert (found.failure.outcome, found.failure.scope) == (outcome, scope)
    assert not found.fine


def test_a_job_of_squeue_s_json_is_judged_in_the_form_of_old_and_new_releases() -> None:
    for state in ("PENDING", ["PENDING"]):
        document = {"jobs": [{"job_id": 4, "job_state": state, "state_reason": "PartitionTimeLimit"}]}
        assert judge("slurm", json.dumps(document).encode()).failure.outcome is Outcome.CONFIG


def test_memory_is_told_by_what_stands_beside_the_state() -> None:
    assert judge("slurm", SCONTROL.encode()).failure.code == "OUT_OF_MEMORY"
    plain = SCONTROL.replace("0:125", "1:0")
    assert judge("slurm", plain.encode()).failure.code == "EXIT_1"


@pytest.mark.parametrize(
    ("lane", "answer"),
    [
        ("slurm", "RUNNING"),
        ("slurm", "Submitted batch job 57"),
        ("slurm", "57 main wl-a1 ada R 1:02 1 gpu1"),
        ("slurm", '{"rc": 0, "stderr": ""}'),
        ("gcp", '{"kind": "compute#operation", "status": "DONE", "operationType": "insert"}'),
        ("gcp", '{"kind": "compute#instance", "status": "RUNNING"}'),
        ("runpod", '{"id": "p1", "status": "RUNNING"}'),
        ("ssh", "rc=0"),
        ("ssh", '{"job_rc": null, "pid_alive": true}'),
        ("local", '{"job_rc": 0}'),
    ],
)
def test_what_tells_of_no_failure_is_called_none(lane: str, answer: str) -> None:
    found = judge(lane, answer.encode())
    assert found.fine
    assert found.failure.message.startswith("no failure: ")


@pytest.mark.parametrize("lane", KINDS)
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_answer"),
        (b" \n\t\n", "empty_answer"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "not_an_answer"),
        (bytes(range(128, 256)) * 8, "not_an_answer"),
        (b'[{"rc": 1}, {"rc": 2}]', "several_answers"),
        (b'{"cases": []}', "several_answers"),
        (b"[" * 200_000, "not_an_answer"),
    ],
)
def test_what_can_be_no_answer_is_refused_with_what_to_give(lane: str, data: bytes, code: str) -> None:
    with pytest.raises(InputError) as refused:
        judge(lane, data)
    assert refused.value.code == code
    assert refused.value.hint


def test_an_endless_answer_is_refused_and_a_lane_that_is_none_is_named() -> None:
    with pytest.raises(InputError, match="4 MiB"):
        judge("gcp", b"x" * (4 * 1024 * 1024 + 1))
    with pytest.raises(InputError, match="'azure'"):
        judge("azure", b"x")


def test_a_windows_shell_s_text_is_read() -> None:
    assert judge("slurm", "PENDING Priority".encode("utf-16")).failure.outcome is Outcome.CAPACITY


_KEYS = (
    "error",
    "errors",
    "code",
    "message",
    "kind",
    "body",
    "http_status",
    "api",
    "state",
    "reason",
    "rc",
    "stderr",
    "job_rc",
    "exc_type",
    "data",
    "pod",
    "id",
    "status",
    "detail",
    "exit_status",
    "jobs",
    "job_state",
    "input",
    "desiredStatus",
    "exception",
    "log_tail",
    "exit_signal",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_KEYS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(KINDS), JSON | st.text(max_size=200))
def test_whatever_is_pasted_gets_a_class_or_is_refused(lane: str, answer: Any) -> None:
    data = answer if isinstance(answer, str) else json.dumps(answer)
    try:
        found = judge(lane, data.encode(errors="replace"))
    except InputError as refused:
        assert refused.message
    else:
        assert found.failure.code
