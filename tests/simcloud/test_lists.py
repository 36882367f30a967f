"""Filters and pages of list calls."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widelane.simcloud.filters import compile_filter, page
from widelane.simcloud.refusals import Refused

VM = {
    "name": "wl-1",
    "status": "RUNNING",
    "zone": "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a",
    "labels": {"widelane": "1", "widelane-run": "r-7", "a.b": "dotted"},
    "scheduling": {"preemptible": True},
}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", True),
        ("labels.widelane=1", True),
        ("labels.widelane = 1", True),
        ('labels.widelane="1"', True),
        ("labels.widelane=2", False),
        ("labels.widelane!=2", True),
        ("labels.widelane:*", True),
        ("labels.owner:*", False),
        ("labels.owner=x", False),
        ("labels.owner!=x", True),
        ("labels.a.b=dotted", True),
        ("labels.widelane=1 AND labels.widelane-run=r-7", True),
        ("labels.widelane=1 AND labels.widelane-run=r-8", False),
        ("(labels.widelane=1) (status=RUNNING)", True),
        ("((labels.widelane=1) AND (status=STOPPED))", False),
        ("name eq wl-.*", True),
        ("name ne wl-.*", False),
        ('name eq "wl-2"', False),
        ("zone:us-central1", True),
        ("scheduling.preemptible=true", True),
        ("scheduling.preemptible=false", False),
    ],
)
def test_a_filter_keeps_what_it_says(text, kept):
    assert compile_filter(text)(VM) is kept


@pytest.mark.parametrize(
    "text", ["labels.widelane", "=1", "a=1 OR b=2", "(a=1", "a=1)", "NOT a=1", "name eq '('", "a=1 &"]
)
def test_a_filter_that_is_not_understood_is_refused(text):
    with pytest.raises(Refused) as refused:
        compile_filter(text)
    assert refused.value.status == 400


@given(names=st.lists(st.text(alphabet="abcdefg-0123", min_size=1), unique=True), most=st.integers(1, 7))
def test_pages_hold_every_item_once_and_in_order(names, most):
    items = sorted(names)
    seen: list[str] = []
    token: str | None = ""
    while token is not None:
        shown, token = page(items, str, {"maxResults": str(most), **({"pageToken": token} if token else {})})
        assert len(shown) <= most
        seen += shown
    assert seen == items


@pytest.mark.parametrize(
    "params", [{"maxResults": "501"}, {"maxResults": "-1"}, {"maxResults": "x"}, {"pageToken": "%"}]
)
def test_bad_page_parameters_are_refused(params):
    with pytest.raises(Refused):
        page(["a"], str, params)
