"""Hosts of known size as the only lanes, or one of several."""

from __future__ import annotations

from tests.fakes.benches import judged, make_bench, phase, words
from widelane.models.room import LaneRoom
from widelane.models.verdict import FindingCode, PhaseVerdict

ROOMS = {"ssh.box": LaneRoom(gpus=4), "ssh.small": LaneRoom(gpus=2)}


def asked(*lanes: str, **fields: object) -> PhaseVerdict:
    return judged(phase(**fields), make_bench(lanes=lanes, rooms=ROOMS))


def test_no_width_is_recommended_that_no_host_has() -> None:
    assert asked("ssh.box").recommended_width == 4
    assert asked("ssh.small").recommended_width == 2
    assert asked("ssh.small", "ssh.box").recommended_width == 4
    assert asked("gcp", "ssh.box").recommended_width == asked("gcp").recommended_width == 8
    assert asked("ssh.unknown").recommended_width == 8


def test_the_width_of_the_largest_host_is_not_needlessly_narrow() -> None:
    codes = [finding.code for finding in asked("ssh.box", width=4).findings]
    assert FindingCode.NEEDLESSLY_NARROW not in codes
    codes = [finding.code for finding in asked("ssh.box", "gcp", width=4).findings]
    assert FindingCode.NEEDLESSLY_NARROW in codes


def test_a_wider_request_starts_at_what_a_host_has() -> None:
    verdict = asked("ssh.box", "ssh.small", width=8)
    assert verdict.requested_width == 8
    assert words(verdict.ladder) == ["ssh.box 4", "ssh.box 2", "ssh.box 1", "ssh.small 2", "ssh.small 1"]
    assert words(asked("ssh.box", "ssh.small", width=2).ladder)[0] == "ssh.box 2"


def test_a_host_below_the_least_width_is_no_rung() -> None:
    assert words(asked("ssh.box", "ssh.small", width=4, min_width=4).ladder) == ["ssh.box 4"]
