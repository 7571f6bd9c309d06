"""A run killed at any moment leaves the former output or the new one, whole; the next run repairs the rest.

This file is also the program that gets killed: `python test_recovery.py serve` forks a child per request.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from filelock import lock_descriptor

import common
from common.core.errors import Interrupted, LockedError
from common.engine.storage import LocalStorage
from common.runs import locking, recovery, staging
from common.runs.locking import OutputLock
from common.runs.recovery import end, restore_if_interrupted
from common.runs.staging import StagedOutput
from common.runs.targets import Target
from tests.stopping_storage import StopsAtCall

OLD = {"part-00000": "old 0", "part-00001": "old 1", "_SUCCESS": ""}
NEW = {"day=1/part-00000": "new 0", "_SUCCESS": ""}
NEXT = {"part-00000": "next 0", "_SUCCESS": ""}
TRACED = {str(module.__file__) for module in (locking, recovery, staging)}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def tree(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): f.read_text() for f in folder.rglob("*") if f.is_file()}


def left(folder: Path) -> frozenset[tuple[str, str | None]]:
    """All that a run has left: what the next run finds does not depend on anything else."""
    return frozenset(
        (str(f.relative_to(folder)), f.read_text() if f.is_file() and f.suffix != ".lock" else None)
        for f in folder.rglob("*")
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def stage(output: Path, files: dict[str, str], *, run_id: str, storage: Any = None) -> None:
    kept = storage or LocalStorage()
    with StagedOutput(str(output), run_id=run_id, mode="overwrite", storage=kept) as staged:
        write(Path(staged.staging_path), files)
        staged.publish()


# --- the program that gets killed


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


class KilledInDelete(LocalStorage):
    """A storage whose process is killed when half of a folder is deleted."""

    def delete_tree(self, path: str) -> None:
        if not self.exists(path):
            return
        next(file for file in sorted(Path(path).rglob("*")) if file.is_file()).unlink()
        die()


def at_each_line(act: Callable[[], None]) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that acts before each line that locking, recovery and staging execute."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line":
            act()
        return trace

    return trace


def at_line(number: int, act: Callable[[], None]) -> Callable[[FrameType, str, Any], Any]:
    """A trace function that acts before the `number`-th of those lines."""
    to_come = number

    def count() -> None:
        nonlocal to_come
        to_come -= 1
        if to_come == 0:
            act()

    return at_each_line(count)


def run_child(request: dict[str, Any]) -> None:
    storage: Any = None
    if request["kind"] == "call":
        storage = StopsAtCall(request["number"], request["when"], die)
    elif request["kind"] == "delete":
        storage = KilledInDelete()
    else:
        sys.settrace(at_line(request["number"], die))
    stage(Path(request["output"]), NEW, run_id="r2", storage=storage)
    sys.settrace(None)


def serve() -> None:
    """Answer each request line with the signal that ended its child; 0 when it came through."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                run_child(json.loads(line))
                os._exit(0)
            finally:
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def hold(output: str) -> None:
    """Stage, leave a child behind that has inherited what can be inherited, and wait to be killed."""
    with StagedOutput(output, run_id="holder", mode="overwrite", storage=LocalStorage()) as staged:
        write(Path(staged.staging_path), NEW)
        orphan = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL)
        sys.stdout.write(f"{orphan.pid}\n")
        sys.stdout.flush()
        sys.stdin.read()


def contend(output: str) -> None:
    """Three processes take the lock again and again; fails when two are inside at the same time."""
    children = [multiprocessing.get_context("fork").Process(target=enter, args=(output,)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    sys.exit(any(child.exitcode for child in children))


def enter(output: str) -> None:
    inside = Path(output + ".inside")
    taken = 0
    while taken < 20:
        lock = OutputLock(Target.of(output).lock_path, name=output, run_id=f"p{os.getpid()}")
        try:
            lock.acquire()
        except LockedError:
            continue
        inside.touch(exist_ok=False)
        inside.unlink()
        lock.release()
        taken += 1


def start(*arguments: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(Path(common.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, __file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )


# --- killed


@pytest.fixture(scope="module")
def killed() -> Iterator[Callable[..., bool]]:
    server = start("serve")

    def run(output: Path, **request: Any) -> bool:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps({"output": str(output), **request}) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        return code != 0

    yield run
    server.communicate(timeout=30)


def check_after_kill(output: Path, former: dict[str, str] | None, where: object) -> None:
    """A reader finds one whole output; so does the next run, which publishes and leaves nothing else."""
    if output.exists():
        assert tree(output) in (former, NEW), where
    else:
        seen = output.parent.with_suffix(".reader") / output.name
        shutil.copytree(output.parent, seen.parent)
        assert restore_if_interrupted(str(seen), storage=LocalStorage()) == (former is not None), where
        assert former is None or tree(seen) == former, where
    stage(output, NEXT, run_id="r3")
    assert tree(output) == NEXT, where
    assert names(output.parent) == ["out"], where


def sweep(killed: Callable[..., bool], folder: Path, former: dict[str, str] | None, **request: Any) -> int:
    """Kill at step 1, 2, … until a run comes through; returns how many were killed."""
    for number in range(1, 2000):
        output = folder / str(number) / "out"
        output.parent.mkdir()
        write(output, former or {})
        if not killed(output, number=number, **request):
            assert tree(output) == NEW
            assert names(output.parent) == ["out"]
            return number - 1
        check_after_kill(output, former, (request, number))
    raise AssertionError("never came through")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("former", [OLD, None], ids=["overwrite", "first"])
def test_killed_at_each_storage_call(
    tmp_path: Path, killed: Callable[..., bool], former: dict[str, str] | None, when: str
) -> None:
    # At least: one listing each before and after, the check of the staged files, the renames, the deletion.
    assert sweep(killed, tmp_path, former, kind="call", when=when) >= (8 if former else 5)


def lines_that_change_the_disk(folder: Path) -> list[int]:
    """The lines of a publish that find something else on disk than the line before them did."""
    write(folder / "out", OLD)
    found = []
    debugger = sys.gettrace()
    sys.settrace(at_each_line(lambda: found.append(left(folder))))
    try:
        stage(folder / "out", NEW, run_id="r2")
    finally:
        sys.settrace(debugger)
    assert len(found) > 50
    return [
        number for number, (before, now) in enumerate(pairwise([frozenset(), *found]), 1) if before != now
    ]


def test_killed_at_each_line(tmp_path: Path, killed: Callable[..., bool]) -> None:
    numbers = lines_that_change_the_disk(tmp_path)  # a kill at another line leaves what one of these leaves
    assert len(numbers) > 5
    for number in numbers:
        output = tmp_path / str(number) / "out"
        write(output, OLD)
        assert killed(output, kind="line", number=number)
        check_after_kill(output, OLD, number)


def test_a_half_deleted_former_output_is_never_put_back(tmp_path: Path, killed: Callable[..., bool]) -> None:
    output = tmp_path / "here" / "out"
    write(output, OLD)
    assert killed(output, kind="delete")
    assert tree(output) == NEW
    shutil.rmtree(output)
    assert not restore_if_interrupted(str(output), storage=LocalStorage())
    assert not output.exists()
    stage(output, NEXT, run_id="r3")
    assert names(output.parent) == ["out"]


# --- interrupted


@pytest.mark.parametrize("former", [OLD, None], ids=["overwrite", "first"])
def test_interrupted_at_each_line(tmp_path: Path, former: dict[str, str] | None) -> None:
    def interrupt() -> None:
        raise Interrupted(signal.SIGTERM)

    debugger = sys.gettrace()
    count = 0
    checked: set[object] = set()
    for number in range(1, 2000):
        output = tmp_path / str(number) / "out"
        if former is not None:
            write(output, former)
        sys.settrace(at_line(number, interrupt))
        try:
            stage(output, NEW, run_id="r2")
            break
        except Interrupted:
            count += 1
        finally:
            sys.settrace(debugger)
        if (found := left(output.parent)) in checked:
            continue
        checked.add(found)
        assert (tree(output) if output.exists() else None) in (former, NEW), number
        stage(output, NEXT, run_id="r3")
        assert tree(output) == NEXT, number
        assert names(output.parent) == ["out"], number
    assert count > 50


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_while_the_engine_writes_leaves_no_trace(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    def interrupt(received: int, _: FrameType | None) -> None:
        raise Interrupted(received)

    output = tmp_path / "out"
    write(output, OLD)

    def work() -> None:
        with StagedOutput(str(output), run_id="r2", mode="overwrite", storage=LocalStorage()) as staged:
            write(Path(staged.staging_path), NEW)
            os.kill(os.getpid(), number)
            time.sleep(5)

    before = signal.signal(number, interrupt)
    try:
        with pytest.raises(Interrupted) as caught:
            work()
    finally:
        signal.signal(number, before)
    assert caught.value.exit_code == code
    assert tree(output) == OLD
    assert names(tmp_path) == ["out"]


# --- two runs


def test_a_second_run_is_told_who_holds_the_output_and_a_killed_holder_blocks_nobody(tmp_path: Path) -> None:
    output = tmp_path / "out"
    write(output, OLD)
    holder = start("hold", str(output))
    assert holder.stdout is not None
    orphan = int(holder.stdout.readline())
    try:
        with pytest.raises(LockedError) as caught:
            stage(output, NEXT, run_id="r2")
        assert int(caught.value.exit_code) == 5
        assert f"run holder (pid {holder.pid})" in str(caught.value)
        assert tree(tmp_path / ".out.staging-holder") == NEW
        holder.kill()
        holder.communicate(timeout=30)
        assert names(tmp_path) == [".out.lock", ".out.staging-holder", "out"]
        stage(output, NEXT, run_id="r2")  # the orphan is still alive
        assert tree(output) == NEXT
        assert names(tmp_path) == ["out"]
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_never_two_holders_although_the_lock_file_comes_and_goes(tmp_path: Path) -> None:
    process = start("contend", str(tmp_path / "out"))
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert names(tmp_path) == []


def test_a_lock_file_removed_before_it_could_be_locked_is_not_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ".out.lock"
    opened: list[int] = []

    def slow(descriptor: int, *, blocking: bool) -> bool:
        if not opened:
            path.unlink()  # what its owner does when it ends
        opened.append(os.fstat(descriptor).st_ino)
        return lock_descriptor(descriptor, blocking=blocking)

    monkeypatch.setattr(locking, "lock_descriptor", slow)
    lock = OutputLock(str(path), name="out", run_id="r1")
    lock.acquire()
    assert len(opened) == 2
    assert path.stat().st_ino == opened[1]
    with pytest.raises(LockedError, match="run r1"):
        OutputLock(str(path), name="out", run_id="r2").acquire()
    lock.release()
    assert not path.exists()


def test_a_run_whose_lock_file_was_taken_away_does_not_publish(tmp_path: Path) -> None:
    output = tmp_path / "out"
    write(output, OLD)
    with StagedOutput(str(output), run_id="r1", mode="overwrite", storage=LocalStorage()) as first:
        write(Path(first.staging_path), NEW)
        (tmp_path / ".out.lock").unlink()
        with StagedOutput(str(output), run_id="r2", mode="overwrite", storage=LocalStorage()) as second:
            write(Path(second.staging_path), NEXT)
            write(Path(first.staging_path), NEW)  # the second run has deleted it
            with pytest.raises(LockedError, match="removed or replaced"):
                first.publish()
            first.__exit__(None, None, None)
            assert names(tmp_path) == [".out.lock", ".out.staging-r2", "out"]
            second.publish()
    assert tree(output) == NEXT
    assert names(tmp_path) == ["out"]


# --- leftovers made by hand


def test_the_newest_of_several_former_outputs_comes_back(tmp_path: Path) -> None:
    for run_id, files, seconds in (("z", OLD, 1000), ("b", NEW, 3000), ("c", NEXT, 2000)):
        write(tmp_path / f".out.old-{run_id}", files)
        os.utime(tmp_path / f".out.old-{run_id}", (seconds, seconds))
    write(tmp_path / ".out.staging-b", NEXT)
    assert restore_if_interrupted(str(tmp_path / "out"), storage=LocalStorage())
    assert tree(tmp_path / "out") == NEW
    assert names(tmp_path) == ["out"]


def test_leftovers_of_targets_with_like_names_are_not_touched(tmp_path: Path) -> None:
    others = {
        ".out.old-b.old-r1",
        ".out.staging-b.lock",
        ".out.staging-b.staging-r1",
        ".out2.old-r1",
        "out.old-r1",
    }
    for name in others:
        write(tmp_path / name, OLD)
    assert not restore_if_interrupted(str(tmp_path / "out"), storage=LocalStorage())
    stage(tmp_path / "out", NEXT, run_id="r2")
    assert set(names(tmp_path)) == others | {"out"}


@pytest.mark.parametrize("asked", ["out", "out/", "out/day=1", "out/day=1/part-*", "out/*/*", "o*t"])
def test_a_reader_of_something_inside_gets_the_whole_output_back(tmp_path: Path, asked: str) -> None:
    write(tmp_path / ".out.old-r1", NEW)
    found = restore_if_interrupted(f"{tmp_path}/{asked}", storage=LocalStorage())
    assert found == (asked != "o*t")  # a glob that matches nothing names no output
    assert names(tmp_path) == (["out"] if found else [".out.old-r1"])


@pytest.mark.parametrize("path", ["/", ".", "file:///", "*", "s3a://bucket"])
def test_a_path_that_is_there_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not restore_if_interrupted(path, storage=LocalStorage())


def test_there_is_nothing_to_restore(tmp_path: Path) -> None:
    assert not restore_if_interrupted(str(tmp_path / "absent" / "out"), storage=LocalStorage())
    assert not restore_if_interrupted(str(tmp_path / "out"), storage=LocalStorage())
    write(tmp_path / "out", NEW)
    write(tmp_path / ".out.old-r1", OLD)
    assert not restore_if_interrupted(str(tmp_path / "out"), storage=LocalStorage())
    assert tree(tmp_path / "out") == NEW
    assert tree(tmp_path / ".out.old-r1") == OLD


def test_a_reader_between_the_two_renames_of_a_live_run_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    write(tmp_path / ".out.old-r2", OLD)
    lock = OutputLock(str(tmp_path / ".out.lock"), name="out", run_id="r2")
    lock.acquire()
    monkeypatch.setattr(time, "sleep", lambda _: write(output, NEW))  # the live run goes on
    assert restore_if_interrupted(str(output), storage=LocalStorage())
    assert tree(output) == NEW
    assert tree(tmp_path / ".out.old-r2") == OLD
    lock.release()


def test_a_reader_gives_up_on_a_run_that_never_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / ".out.old-r2", OLD)
    lock = OutputLock(str(tmp_path / ".out.lock"), name="out", run_id="r2")
    lock.acquire()
    clock = iter(range(100))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    assert not restore_if_interrupted(str(tmp_path / "out"), storage=LocalStorage())
    assert names(tmp_path / ".out.old-r2") != []
    lock.release()


def test_a_leftover_that_cannot_be_deleted_is_named_and_stops_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Stubborn(LocalStorage):
        def delete_tree(self, path: str) -> None:
            if self.exists(path):
                raise OSError("device busy")

    write(tmp_path / ".out.staging-r1", OLD)
    stage(tmp_path / "out", NEXT, run_id="r2", storage=Stubborn())
    assert tree(tmp_path / "out") == NEXT
    assert ".out.staging-r1 (device busy)" in caplog.text


def test_a_run_that_ends_leaves_the_others_alone(tmp_path: Path) -> None:
    for run_id in ("r1", "r2"):
        write(tmp_path / f".out.staging-{run_id}", NEW)
    end(Target.of(str(tmp_path / "out")), "r1", storage=LocalStorage())
    assert names(tmp_path) == [".out.staging-r2"]


if __name__ == "__main__":
    PROGRAMS: dict[str, Callable[..., None]] = {"serve": serve, "hold": hold, "contend": contend}
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
