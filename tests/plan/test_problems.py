"""Each thing that can be wrong with a plan: its code and its place, which `§` marks."""

from __future__ import annotations

import pytest

from tests.plan.conftest import ReadPhase, Refused
from widelane.models.verdict import NEVER_ACCEPTED
from widelane.plan.keys import PHASE

HEAD = "widelane: 1\nphases:\n- name: a\n"
KEYS = {
    "negative hours": ("wrong_type", "gpu_hours: §-1"),
    "zero minutes": ("wrong_type", "unit_minutes: §0"),
    "a negative set-up": ("wrong_type", "setup_minutes: §-0.5"),
    "no width": ("wrong_type", "width: §0"),
    "half a GPU": ("wrong_type", "width: §1.5"),
    "width as text": ("wrong_type", "width: §'8'"),
    "width as list": ("wrong_type", "width: §[8]"),
    "gpus other than 0": ("wrong_type", "gpus: §8"),
    "an unknown key": ("unknown_key", "§colour: red"),
    "a key that is a list": ("unknown_key", "? §[a]\n: b"),
    "a merge key": ("unknown_key", "§<<: {width: 8}"),
    "a key twice": ("duplicate_key", "width: 8\n§width: 4"),
    "an axis twice": ("duplicate_key", "axes: {x: 1, §x: 2}"),
    "a variable twice": ("duplicate_key", "env:\n  A: 1\n  §A: 2"),
    "an empty axis": ("bad_value", "axes: {x: §[]}"),
    "no axis": ("bad_value", "axes: §{}"),
    "a size of 0": ("wrong_type", "axes: {x: §0}"),
    "a huge size": ("wrong_type", "axes: {x: §1000000001}"),
    "axes as text": ("wrong_type", "axes: §model"),
    "axes as list": ("wrong_type", "axes: §[model, draw]"),
    "a value twice": ("duplicate_value", "axes: {x: [a, b, §a]}"),
    "a value that is a list": ("wrong_type", "axes: {x: [a, §[b]]}"),
    "an axis no command can name": ("bad_name", "axes: {§draw set: 2}"),
    "an axis by a taken name": ("bad_name", "axes: {§gpus: 2}"),
    "too many axes": ("bad_value", "axes: §{" + ", ".join(f"x{n}: 1" for n in range(17)) + "}"),
    "axes none without why": ("missing_key", "§axes: none"),
    "two estimates": ("contradiction", "gpu_hours: 8\n§unit_minutes: 3"),
    "a list of another length": ("bad_value", "axes: {x: 3}\n§unit_minutes: [1, 2]"),
    "an empty list of minutes": ("bad_value", "unit_minutes: §[]"),
    "a negative minute in a list": ("wrong_type", "unit_minutes: [1, §-2]"),
    "min_width over width": ("contradiction", "width: 4\n§min_width: 8"),
    "outputs as text": ("wrong_type", "outputs: §out.json"),
    "an absolute output": ("wrong_type", "outputs: [a, §/etc/passwd]"),
    "an output that climbs": ("wrong_type", "outputs: [§out/../../x]"),
    "an output in a home": ("wrong_type", "outputs: [§~/x]"),
    "an output in bare braces": ("wrong_type", "outputs: [§{model}]"),
    "an output of two lines": ("wrong_type", 'outputs: [§"a\\nb"]'),
    "a workdir that climbs": ("wrong_type", "workdir: §.."),
    "a merge output that climbs": ("wrong_type", "merge_outputs: [§../x]"),
    "an open quote": ("open_quote", "command: python run.py §'a b"),
    "an open quote after a closed one": ("open_quote", "command: say 'a' §\"b"),
    "a last backslash": ("open_quote", "command: say a §\\"),
    "an open quote in a quoted text": ("open_quote", 'command: §"say \'a"'),
    "an empty command": ("wrong_type", "command: §''"),
    "a command without words": ("wrong_type", "command: §\"''\""),
    "an empty list of words": ("bad_value", "command: §[]"),
    "an empty program": ("wrong_type", "command: [§'', a]"),
    "a command as mapping": ("wrong_type", "command: §{run: x}"),
    "two commands": ("shell_syntax", "setup: pip install a §&& pip install b"),
    "two commands by a semicolon": ("shell_syntax", "command: cd x§; python y"),
    "a pipe": ("shell_syntax", "command: python a.py §| tee log"),
    "a redirection": ("shell_syntax", "merge: cat a b §> c"),
    "a substitution": ("shell_syntax", "command: echo §$(date)"),
    "two lines of commands": ("shell_syntax", "command: §|\n  cd x\n  python y"),
    "a pin without reason": ("missing_key", "pin: §{lane: gcp}"),
    "a pin of nothing": ("missing_key", "§pin: {reason: habit}"),
    "a pin as text": ("wrong_type", "pin: §gcp"),
    "an unknown model": ("wrong_type", "pin: {model: §spto, reason: x}"),
    "a rate without its number": ("missing_key", "narrow_because: {§kind: rate_limited, calls: 3}"),
    "seats without their number": ("missing_key", "narrow_because: {§kind: licence_seats}"),
    "state without its path": ("missing_key", "narrow_because: {§kind: shared_state}"),
    "another kind's number": ("unknown_key", "narrow_because: {kind: shared_state, path: x, §seats: 2}"),
    "an unknown kind": ("wrong_type", "narrow_because: {kind: §lazy}"),
    "no kind": ("missing_key", "narrow_because: §{seats: 3}"),
    "order with axes": ("contradiction", "axes: {x: 3}\n§narrow_because: {kind: order_dependent}"),
    "accept without reason": ("missing_key", "accept: [§{code: too_wide}]"),
    "accept without code": ("missing_key", "accept: [§{reason: x}]"),
    "accept of an unknown code": ("unknown_code", "accept: [{code: §too_wid, reason: x}]"),
    "accept for another phase": ("contradiction", "accept: [{code: too_wide, reason: x, §phase: b}]"),
    "accept as mapping": ("wrong_type", "accept: §{code: too_wide, reason: x}"),
    "an empty list of arms": ("bad_value", "arms: §[]"),
    "an arm without name": ("missing_key", "arms: [§{axes: {x: 2}}]"),
    "two arms of a name": ("duplicate_name", "arms: [{name: x}, {§name: x}]"),
    "a variable no shell has": ("bad_name", "env: {§MY-VAR: 1}"),
    "a variable of ours": ("bad_name", "env: {§WIDELANE_WIDTH: 8}"),
    "the devices of a unit": ("bad_name", "env: {§CUDA_VISIBLE_DEVICES: 0}"),
    "a variable without value": ("no_value", "env: {A: §null}"),
    "a variable as list": ("wrong_type", "env: §[A=1]"),
    "secrets with values": ("secret_value", "secrets: §{HF_TOKEN: hf_x}"),
    "a secret that is an assignment": ("bad_secret", "secrets: [A, §HF_TOKEN=hf_x]"),
    "a secret that is set": ("contradiction", "env: {HF_TOKEN: x}\n§secrets: [HF_TOKEN]"),
    "a source of nothing": ("missing_key", "§source: {}"),
    "a source without commit": ("missing_key", "§source: {git: https://example.org/x.git}"),
    "a commit without repository": ("missing_key", "§source: {rev: 0123456789012345678901234567890123456789}"),
    "a branch for a commit": ("wrong_type", "source: {git: https://example.org/x.git, rev: §main}"),
    "two sources": (
        "contradiction",
        "§source: {path: ., git: https://example.org/x, rev: 0123456789012345678901234567890123456789}",
    ),
    "a source as text": ("wrong_type", "source: §https://example.org/x.git"),
    "a store that is a folder": ("wrong_type", "store: §outputs"),
    "a phase after itself": ("cycle", "after: [§a]"),
    "a phase after none of the plan": ("unknown_phase", "after: [§b]"),
    "a hold of nothing": ("contradiction", "§hold: true"),
    "a tag": ("tag", "width: §!!int 8"),
    "a tag on a list": ("tag", "outputs: §!mine [a]"),
    "needs of no memory": ("wrong_type", "needs: {ram_gib: §0}"),
    "an empty reason": ("wrong_type", "justification: §'  '"),
}
PLANS = {
    "no version": ("missing_key", "§phases: [{name: a}]"),
    "another version": ("wrong_type", "widelane: §2\nphases: [{name: a}]"),
    "a version as text": ("wrong_type", "widelane: §'1'\nphases: [{name: a}]"),
    "no phases": ("missing_key", "§widelane: 1"),
    "an empty list of phases": ("bad_value", "widelane: 1\nphases: §[]"),
    "phases as mapping": ("wrong_type", "widelane: 1\nphases: §{a: {width: 8}}"),
    "a phase as text": ("wrong_type", "widelane: 1\nphases: [§generate]"),
    "a phase without name": ("missing_key", "widelane: 1\nphases: [§{width: 8}]"),
    "a name with a space": ("wrong_type", "widelane: 1\nphases: [{name: §a b}]"),
    "a name of two lines": ("wrong_type", 'widelane: 1\ntask: §"a\\nb"\nphases: [{name: a}]'),
    "two phases of a name": ("duplicate_name", "widelane: 1\nphases:\n- name: a\n- width: 1\n  §name: a"),
    "accept without phase": (
        "missing_key",
        "widelane: 1\nphases: [{name: a}]\naccept: [§{code: too_wide, reason: x}]",
    ),
    "accept for no phase": (
        "unknown_phase",
        "widelane: 1\nphases: [{name: a}]\naccept: [{code: too_wide, reason: x, §phase: b}]",
    ),
    "a loop": (
        "cycle",
        "widelane: 1\nphases:\n- {name: a, after: [c]}\n- {name: b, §after: [a]}\n- {name: c, after: [b]}",
    ),
    "text": ("no_plan", "§just words"),
    "a list": ("no_plan", "§- a\n- b"),
    "nothing": ("no_plan", "§"),
    "two documents": ("bad_yaml", "widelane: 1\n§---\nphases: []"),
    "an open bracket": ("bad_yaml", "widelane: 1\nphases: [{name: a}\n§task: x"),
    "a tab": ("bad_yaml", "widelane: 1\nphases:\n§\t- name: a"),
    "an open text": ("bad_yaml", 'widelane: 1\ntask: §"abc'),
    "a glob taken for an alias": ("bad_yaml", "widelane: 1\nphases: [{name: a, outputs: [§*.json]}]"),
    "a colon in a text": ("bad_yaml", "widelane: 1\ntask: a§: b\nphases: [{name: a}]"),
    "a loop of aliases": ("alias_bomb", "widelane: 1\nphases: §&p\n- *p"),
    "a control character": ("bad_character", "widelane: 1\ntask: 'a§\x1bb'"),
    "a line separator": ("bad_character", "widelane: 1\n# a§\u2028b"),
    "half of a pair": ("bad_character", "widelane: 1\ntask: '§\ud83d'"),
}


def _marked(text: str) -> tuple[str, tuple[int, int]]:
    """The text without its mark, and the 1-based place where it stood."""
    before, _, after = text.partition("§")
    return before + after, (before.count("\n") + 1, len(before) - before.rfind("\n"))


@pytest.mark.parametrize("name", KEYS)
def test_a_key_that_is_wrong_is_refused_at_its_place(name: str, refused: Refused):
    code, keys = KEYS[name]
    text, place = _marked(HEAD + "".join(f"  {line}\n" for line in keys.split("\n")))
    (problem,) = refused(text)
    assert (problem.code, (problem.line, problem.column)) == (code, place), problem
    assert problem.message.endswith(".")
    assert problem.fix


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_that_is_wrong_is_refused_at_its_place(name: str, refused: Refused):
    code, plan = PLANS[name]
    text, place = _marked(plan)
    (problem,) = refused(text)
    assert (problem.code, (problem.line, problem.column)) == (code, place), problem
    assert problem.message.endswith(".")
    assert problem.fix


def test_every_problem_is_told_at_once_in_the_order_of_the_text(refused: Refused):
    keys = [keys for code, keys in KEYS.values() if "\n" not in keys and code != "duplicate_key"]
    text = "widelane: 1\nphases:\n"
    for number, line in enumerate(keys):
        text += f"- name: p{number}\n  {line.replace('§', '')}\n"
    problems = refused(text)
    assert {problem.line for problem in problems} >= set(range(4, 4 + 2 * len(keys), 2)) - _lines_of(keys, "hold")
    assert problems == sorted(problems, key=lambda problem: (problem.line, problem.column))


def _lines_of(keys: list[str], word: str) -> set[int]:
    """Lines of the keys that are wrong only in a plan of one phase."""
    return {4 + 2 * number for number, key in enumerate(keys) if word in key or "after: [§a]" in key}


@pytest.mark.parametrize("code", sorted(NEVER_ACCEPTED))
def test_a_finding_that_nobody_may_override_is_not_accepted(code: str, refused: Refused):
    (problem,) = refused(f"{HEAD}  accept: [{{code: {code}, reason: x}}]\n")
    assert problem.code == "not_acceptable"


def test_order_dependent_work_without_axes_is_fine(read_phase: ReadPhase):
    phase = read_phase("axes: none\nwhy: a chain\nnarrow_because: {kind: order_dependent}")
    assert phase.narrow_because is not None


def test_a_phase_that_cannot_be_read_makes_no_other_phase_unknown(refused: Refused):
    (problem,) = refused("widelane: 1\nphases:\n- {name: a b}\n- {name: c, after: [a-b]}\n")
    assert (problem.code, problem.line) == ("wrong_type", 3)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("widht", "width"),
        ("Width", "width"),
        ("gpu-hours", "gpu_hours"),
        ("comand", "command"),
        ("depends_on", "after"),
        ("cmd", "command"),
        ("spot", "spot_tolerant"),
        ("gpu_count", "width"),
        ("timeout", "time_limit_hours"),
    ],
)
def test_an_unknown_key_is_answered_by_the_one_that_was_meant(written: str, meant: str, refused: Refused):
    (problem,) = refused(f"{HEAD}  {written}: 8\n")
    assert problem.fix == f"Did you mean `{meant}`?"


def test_words_that_people_write_instead_are_no_keys():
    words = [word for key in PHASE.keys.values() for word in key.words]
    assert len(words) == len(set(words))
    assert not set(words) & set(PHASE.keys)


def test_what_stands_in_secrets_is_never_shown(refused: Refused):
    for secrets in ("{A: tok-12345}", "[A=tok-12345]", "tok-12345", "[[tok-12345]]", "!x tok-12345"):
        for problem in refused(f"{HEAD}  secrets: {secrets}\n"):
            assert "12345" not in str(problem)


def test_a_long_text_is_shown_shortened(refused: Refused):
    (problem,) = refused(f"{HEAD}  width: {'x' * 10_000}\n")
    assert len(str(problem)) < 300
