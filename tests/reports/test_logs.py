from __future__ import annotations

from widelane.reports.logs import LogFollower


def part(unit: int, *lines: str) -> str:
    return "\n".join([f"==> work {unit}-1 <==", *lines, ""])


def test_only_what_is_new_is_shown_under_the_head_of_its_unit() -> None:
    follower = LogFollower()
    assert follower.new(part(0, "a")) == "==> work 0-1 <==\na\n"
    assert follower.new(part(0, "a")) == ""
    assert follower.new(part(0, "a", "b")) == "b\n"
    assert follower.new(part(0, "a", "b", "c") + "\n" + part(1, "x")) == "c\n==> work 1-1 <==\nx\n"
    assert follower.new(part(0, "a", "b", "c", "d") + "\n" + part(1, "x")) == "==> work 0-1 <==\nd\n"


def test_a_log_whose_beginning_was_cut_goes_on_after_the_last_line_shown() -> None:
    follower = LogFollower()
    follower.new(part(0, "a", "b", "c"))
    assert follower.new(part(0, "c", "d")) == "d\n"


def test_a_log_that_moved_on_too_far_is_shown_whole() -> None:
    follower = LogFollower()
    follower.new(part(0, "a"))
    assert follower.new(part(0, "x", "y")) == "x\ny\n"


def test_a_unit_that_wrote_nothing_yet_has_no_head() -> None:
    assert LogFollower().new(part(0)) == ""
