"""What becomes of a create, by either transport, against a service with real pods."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable

import pytest

from tests.fakes.runpod_server import A100, PCIE
from tests.lanes.conftest import SHORT_WORK
from tests.lanes.runpod.conftest import QUICK, Account
from widelane.errors import LaneAuthError, LaneUnknownError
from widelane.lanes.protocol import Granted, Launch, Machine, MachineState, Pending, Progress
from widelane.lanes.runpod.lane import RunpodLane
from widelane.models.attempt import Failure, Outcome, Scope

pytestmark = pytest.mark.slow

Eventually = Callable[..., None]
Settled = Callable[[RunpodLane, Launch], Progress]
Grant = Callable[[RunpodLane, Launch], Machine]


def refused(progress: Progress) -> Failure:
    assert isinstance(progress, Failure), progress
    return progress


def test_a_pod_does_its_work_says_its_last_word_and_deletes_itself(
    account: Account, granted: Grant, eventually: Eventually
) -> None:
    sent = account.launch(SHORT_WORK)
    machine = granted(account.open(), sent)
    assert (machine.machine_type, machine.provisioning_model, machine.attempt_id) == (
        A100,
        "STANDARD",
        sent.attempt_id,
    )
    key = f"leases/{sent.attempt_id}/finished.json"
    eventually(lambda: account.yard.store.exists(key), within=20.0)
    last = json.loads(account.yard.store.get(key))
    assert (last["state"], last["realized_width"]) == ("succeeded", 2)
    eventually(lambda: not account.server.living())
    eventually(lambda: account.open().find(sent.name, sent.zone) is None)
    own = [each for each in account.server.heard if each.what == "terminate"]
    assert [each.key.startswith("pod_") for each in own] == [True]


def test_the_account_s_key_goes_into_no_pod_and_no_file(account: Account, granted: Grant, yard: object) -> None:
    sent = account.launch()
    granted(account.open(), sent)
    (pod,) = account.server.named(sent.name)
    key = account.server.heard[0].key
    assert key
    assert key not in json.dumps(pod.env) + pod.args
    folder = account.yard.store.folder
    assert folder is not None
    assert not [path for path in folder.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]


def test_no_pod_is_rented_for_a_bucket_that_it_has_no_credentials_for(account: Account) -> None:
    sent = dataclasses.replace(account.launch(), store_url="gs://things/runs")
    failure = refused(account.create(sent))
    assert (failure.outcome, failure.scope, failure.code) == (Outcome.CONFIG, Scope.LANE, "STORE_UNREACHABLE")
    assert "gs://things/runs" in failure.message
    assert not [each for each in account.server.heard if each.what == "create"]


def test_a_pod_made_although_the_call_failed_is_adopted(account: Account, granted: Grant) -> None:
    for fault in ("500_after", "drop_after", "page_after"):
        account.server.fail("create", fault)
        lane, sent = account.open(), account.launch()
        first = refused(lane.create(sent))
        assert (first.outcome, first.outcome_known) == (Outcome.TRANSIENT, False)
        machine = granted(lane, sent)
        assert [pod.id for pod in account.server.named(sent.name)] == [machine.id]
    assert account.server.count("create") == 3


def test_a_create_that_is_never_answered_is_looked_for_by_its_name(account: Account, granted: Grant) -> None:
    account.server.fail("create", "hang_after")
    lane, sent = account.open(dataclasses.replace(QUICK, write=0.3)), account.launch()
    assert refused(lane.create(sent)).outcome_known is False
    granted(lane, sent)
    assert account.server.count("create") == 1


@pytest.mark.parametrize("fault", ["500", "drop"])
def test_a_create_that_came_to_nothing_is_given_up_after_a_while_and_never_sent_again(
    account: Account, settled: Settled, fault: str
) -> None:
    account.server.fail("create", fault)
    lane, sent = account.open(), account.launch()
    assert refused(lane.create(sent)).outcome_known is False
    last = refused(settled(lane, sent))
    assert (last.code, last.outcome, last.outcome_known) == ("POD_LOST", Outcome.TRANSIENT, True)
    assert account.server.count("create") == 1
    assert refused(account.open().create(sent)).code == "POD_LOST"
    assert account.server.count("create") == 1


def test_a_pod_that_shows_after_it_was_given_up_finds_no_work_and_deletes_itself(
    account: Account, settled: Settled, eventually: Eventually
) -> None:
    account.server.hide_new = account.server.hold_new = True
    account.server.fail("create", "500_after")
    lane, sent = account.open(), account.launch()
    lane.create(sent)
    assert refused(settled(lane, sent)).code == "POD_LOST"
    account.server.hold_new = False
    account.server.reveal()
    eventually(lambda: not account.server.living())
    assert not account.yard.store.exists(f"leases/{sent.attempt_id}/host.json")


def test_a_pod_that_began_to_work_unseen_is_not_given_up(
    account: Account, granted: Grant, eventually: Eventually
) -> None:
    account.server.hide_new = True
    account.server.fail("create", "500_after")
    lane, sent = account.open(), account.launch()
    lane.create(sent)
    eventually(lambda: account.yard.store.exists(f"leases/{sent.attempt_id}/claim.json"))
    eventually(lambda: not isinstance(lane.create(sent), Pending))
    assert refused(lane.create(sent)).outcome_known is False
    with pytest.raises(LaneUnknownError):
        lane.find(sent.name, sent.zone)
    account.server.reveal()
    granted(lane, sent)
    assert account.server.count("create") == 1


def test_creates_at_the_same_time_send_one(account: Account, granted: Grant) -> None:
    sent, answers = account.launch(), list[Progress]()
    threads = [threading.Thread(target=lambda: answers.append(account.open().create(sent))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [answer for answer in answers if isinstance(answer, Failure)]
    granted(account.open(), sent)
    assert account.server.count("create") == 1


@pytest.mark.parametrize(
    ("fault", "outcome", "scope"),
    [
        ("capacity", Outcome.CAPACITY, Scope.ZONE),
        ("402", Outcome.QUOTA, Scope.LANE),
        ("401", Outcome.PERMISSION, Scope.LANE),
        ("422", Outcome.CONFIG, Scope.LANE),
        ("429", Outcome.TRANSIENT, Scope.LANE),
    ],
)
def test_a_refusal_is_classed_by_what_it_means(account: Account, fault: str, outcome: Outcome, scope: Scope) -> None:
    account.server.fail("create", fault)
    failure = refused(account.create(account.launch()))
    assert (failure.outcome, failure.scope, failure.outcome_known) == (outcome, scope, True)
    assert account.server.count("create") == 1
    assert not account.server.pods


def test_after_any_certain_refusal_no_pod_of_that_attempt_can_work(account: Account) -> None:
    account.server.fail("create", "402")
    sent = account.launch()
    account.create(sent)
    claim = json.loads(account.yard.store.get(f"leases/{sent.attempt_id}/claim.json"))
    assert claim == {"pod": ""}


def test_a_width_that_a_type_never_has_is_not_asked_for(account: Account) -> None:
    account.server.most[PCIE] = 4
    failure = refused(account.create(account.launch(width=8, zone=PCIE)))
    assert (failure.outcome, failure.code, failure.scope) == (Outcome.CAPACITY, "TOO_WIDE", Scope.ZONE)
    assert "at most 4" in failure.message
    assert account.server.count("create") == 0


def test_a_type_that_the_catalogue_does_not_have_is_left_out(account: Account) -> None:
    failure = refused(account.create(account.launch(zone="NVIDIA A999")))
    assert (failure.outcome, failure.code, failure.scope) == (Outcome.CONFIG, "NO_SUCH_TYPE", Scope.ZONE)
    assert account.server.count("create") == 0


def test_no_stock_at_that_width_is_capacity_whatever_there_is_at_others(account: Account) -> None:
    account.server.stock[A100] = {1: 8, 8: 0}
    failure = refused(account.create(account.launch(width=8)))
    assert failure.outcome is Outcome.CAPACITY
    assert not account.server.pods


def test_a_pod_without_a_gpu_is_capacity(account: Account, settled: Settled) -> None:
    account.server.gpus_given = 0
    failure = refused(settled(account.open(), account.launch()))
    assert (failure.outcome, failure.code) == (Outcome.CAPACITY, "ZERO_GPUS")


def test_a_pod_of_another_width_is_told_not_taken(account: Account, settled: Settled) -> None:
    account.server.gpus_given = 1
    failure = refused(settled(account.open(), account.launch()))
    assert (failure.outcome, failure.code) == (Outcome.CONFIG, "REALIZED_MISMATCH")


def test_a_pod_whose_container_can_not_start_is_the_work_s_fault(account: Account, settled: Settled) -> None:
    account.server.hold_new = True
    lane, sent = account.open(), account.launch()
    assert isinstance(lane.create(sent), Pending)
    (pod,) = account.server.named(sent.name)
    pod.status = "ERROR"
    failure = refused(settled(lane, sent))
    assert (failure.outcome, failure.code) == (Outcome.WORKLOAD, "POD_ERROR")


@pytest.mark.parametrize("status", ["RUNNING", "PROVISIONING"])
def test_a_living_namesake_is_a_conflict_and_stays_untouched(account: Account, status: str) -> None:
    account.server.hold_new = True
    sent = account.launch()
    other = account.server.plant(sent.name, status)
    failure = refused(account.create(sent))
    assert (failure.outcome, failure.code) == (Outcome.CONFLICT, "NOT_OURS")
    account.open().delete(sent.name, sent.zone)
    assert [pod.status for pod in account.server.pods.values()] == [status]
    assert account.server.named(sent.name) == [other]


def test_a_stopped_namesake_is_refused_with_what_can_be_done_and_stays_untouched(account: Account) -> None:
    sent = account.launch()
    other = account.server.plant(sent.name, "EXITED")
    failure = refused(account.create(sent))
    assert (failure.outcome, failure.code, failure.scope) == (Outcome.CONFIG, "STOPPED_NAMESAKE", Scope.LANE)
    assert other.id in failure.message
    assert "terminate" in failure.hint
    assert "rename" in failure.hint
    assert account.server.named(sent.name) == [other]
    assert other.status == "EXITED"
    assert account.server.count("create") == 0


def test_a_pod_of_ours_that_somebody_stopped_is_granted_stopped_and_never_started_again(
    account: Account, granted: Grant
) -> None:
    lane, sent = account.open(), account.launch()
    granted(lane, sent)
    (pod,) = account.server.named(sent.name)
    account.server.stop(pod)
    found = lane.find(sent.name, sent.zone)
    assert found is not None
    assert (found.state, found.end) == (MachineState.STOPPED, None)
    assert lane.preempted(sent.name, sent.zone) is False
    again = account.create(sent)
    assert isinstance(again, Granted)
    assert again.machine.state is MachineState.STOPPED
    assert (pod.status, account.server.count("create")) == ("EXITED", 1)


def test_without_a_key_the_variable_to_set_is_named_and_nothing_is_asked(account: Account) -> None:
    lane = account.open(key_env="NOT_SET")
    with pytest.raises(LaneAuthError) as told:
        lane.check(account.yard.store.url)
    assert "NOT_SET" in str(told.value)
    with pytest.raises(LaneAuthError):
        lane.create(account.launch())
    assert not account.server.heard


def test_a_key_that_is_refused_is_a_login_to_be_renewed(account: Account) -> None:
    account.server.fail("list", "401")
    with pytest.raises(LaneAuthError) as told:
        account.create(account.launch())
    assert "A_KEY" in told.value.hint
    assert account.server.count("create") == 0
