"""Commands and files on a host: what comes back is what was there."""

from __future__ import annotations

import ast
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house.sources import imports, modules
from widelane.errors import LaneUnknownError
from widelane.lanes.checkup.cluster import CLUSTER
from widelane.lanes.checkup.hosts import SURVEY
from widelane.lanes.slurm.cluster import PROGRAM
from widelane.lanes.ssh.lane import FAR
from widelane.store.depot import DEPOT
from widelane.transport import Host, Program, RefusedError, Request, UnfitError
from widelane.transport.program import BASICS
from widelane.transport.remote import frame

pytestmark = pytest.mark.slow

Eventually = Callable[..., None]

TRICKY = ["$(touch gone)", "'; exit 7 #", '"', "a\nb", "`id`", "~", "", "ü", "*", "\\"]
PRINT_WORDS = "import sys; sys.stdout.write(repr(sys.argv[1:]))"


def test_a_command_answers_with_its_code_and_both_of_its_outputs(here: Host) -> None:
    ran = here.run(["sh", "-c", "cat; echo oops >&2; exit 3"], stdin="heard")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "heard", "oops\n")


def test_words_reach_a_command_as_they_are(here: Host) -> None:
    assert here.run([sys.executable, "-c", PRINT_WORDS, *TRICKY]).stdout == repr(TRICKY)


def test_a_command_has_the_folder_and_the_variables_it_was_given(here: Host, tmp_path: Path) -> None:
    ran = here.run(["sh", "-c", 'pwd; echo "$WORD"'], cwd=str(tmp_path), env={"WORD": "a b"})
    assert ran.stdout.splitlines() == [str(tmp_path.resolve()), "a b"]


def test_a_program_that_is_not_there_is_named(here: Host) -> None:
    ran = here.run(["no-such-program"])
    assert (ran.returncode, ran.missing) == (None, "no-such-program")


def test_a_command_that_takes_too_long_is_ended_with_what_it_started(
    here: Host, tmp_path: Path, eventually: Eventually
) -> None:
    ran = here.run(["sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; echo said; wait"], seconds=0.5)
    assert (ran.returncode, ran.stdout) == (None, "said\n")
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not _lives(pid))


def test_a_signal_that_ended_a_command_is_its_code(here: Host) -> None:
    assert here.run(["sh", "-c", "kill -9 $$"]).returncode == -9


def test_a_file_arrives_whole_and_comes_back_whole(here: Host, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "file").write_bytes(data)
    sha256 = here.put(tmp_path / "file", str(tmp_path / "new folder" / "there"), mode=0o600)
    assert (tmp_path / "new folder" / "there").stat().st_mode & 0o777 == 0o600
    assert here.get(str(tmp_path / "new folder" / "there"), tmp_path / "back") == sha256
    assert (tmp_path / "back").read_bytes() == data


def test_an_empty_file_is_a_file(here: Host, tmp_path: Path) -> None:
    here.put(b"", str(tmp_path / "empty"))
    assert here.read([str(tmp_path / "empty"), str(tmp_path / "absent")]) == {
        str(tmp_path / "empty"): b"",
        str(tmp_path / "absent"): None,
    }


def test_a_file_that_cannot_be_written_leaves_what_was_there(here: Host, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("old")
    (tmp_path / "folder").mkdir()
    with pytest.raises(RefusedError, match="Is a directory") as told:
        here.put(b"new", str(tmp_path / "folder"))
    assert told.value.errno != 0
    with pytest.raises(RefusedError):
        here.put(b"new", str(tmp_path / "there" / "below"))
    assert (tmp_path / "there").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "there"]


def test_a_file_of_ours_that_cannot_be_read_is_not_written_there(here: Host, tmp_path: Path) -> None:
    with pytest.raises(LaneUnknownError):
        here.put(tmp_path / "absent", str(tmp_path / "there"))
    assert not (tmp_path / "there").exists()


def test_a_file_that_is_not_there_is_a_missing_file(here: Host, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        here.get(str(tmp_path / "absent"), tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_removing_what_is_gone_succeeds(here: Host, tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    here.remove([str(tmp_path / "there"), str(tmp_path / "absent")])
    assert not (tmp_path / "there").exists()


def test_a_path_may_start_from_the_home_folder(here: Host, own_world: Path) -> None:
    here.put(b"one", "~/one")
    here.put(b"two", "two")
    assert ((own_world / "one").read_bytes(), (own_world / "two").read_bytes()) == (b"one", b"two")
    assert here.greet()["home"] == str(own_world)


def test_many_calls_at_once_each_get_their_own_answer(here: Host) -> None:
    heard: dict[int, str] = {}

    def ask(number: int) -> None:
        heard[number] = here.run(["echo", str(number)]).stdout.strip()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {number: str(number) for number in range(12)}


def test_a_fault_of_a_program_is_told_and_is_no_lost_line(here: Host) -> None:
    broken = Program(("tests.transport.faulty",))
    with pytest.raises(RefusedError, match="ZeroDivisionError"):
        here.call(Request(broken, "divide", {}))


def test_what_a_program_prints_is_no_part_of_its_answer(here: Host) -> None:
    talking = Program(("tests.transport.faulty",))
    assert here.call(Request(talking, "talk", {"words": "hello"})) == {"said": "hello"}


def test_a_program_that_ends_without_an_answer_is_unknown(here: Host) -> None:
    with pytest.raises(LaneUnknownError) as told:
        here.call(Request(Program(("tests.transport.faulty",)), "vanish", {}))
    assert not isinstance(told.value, RefusedError | UnfitError)


@pytest.mark.parametrize(
    "program",
    [BASICS, Program(DEPOT), FAR, PROGRAM, SURVEY, CLUSTER],
    ids=["basics", "depot", "ssh", "slurm", "survey", "survey of a cluster"],
)
def test_what_is_sent_to_hosts_needs_python_3_9_and_what_was_sent_before_it(program: Program) -> None:
    texts = {module.name: module for module in modules()}
    known = {frame.NAME}
    for name in (frame.NAME, *program.modules):
        ast.parse(texts[name].text, feature_version=(3, 9))
        wanted = {found.module for found in imports(texts[name])}
        ours = {module for module in wanted if module.partition(".")[0] == "widelane"}
        assert {module.partition(".")[0] for module in wanted - ours} <= sys.stdlib_module_names
        assert not {module for module in ours if not any(f"{there}.".startswith(f"{module}.") for there in known)}
        known.add(name)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
