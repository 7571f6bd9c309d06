"""An output and the folders that belong to it: of one run both, wherever the process dies."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from common.core.errors import EngineError, OutputExistsError, UsageError
from common.engine.storage import LocalStorage
from common.runs.companions import BAD_ROWS, REJECTS, Companion, made_by_a_run, publish_together
from common.runs.recovery import RUN_FILE, restore_if_interrupted, run_of
from common.runs.staging import StagedOutput
from tests.stopping_storage import StopsAtCall

SUFFIXES = (REJECTS, BAD_ROWS)


class Dead(BaseException):
    """What a process that was killed cannot catch, since it does nothing any more."""


def die() -> None:
    raise Dead


def put(folder: str, text: str) -> None:
    Path(folder).mkdir()
    (Path(folder) / "part-0").write_text(text)


def run(output: Path, run_id: str, *suffixes: str, storage: Any = None, mode: Any = "overwrite") -> None:
    """Publish `run_id` as the content of an output and of its companions."""
    kept = storage or LocalStorage()
    with ExitStack() as stack:
        staged = stack.enter_context(StagedOutput(str(output), run_id=run_id, mode=mode, storage=kept))
        companions = []
        for suffix in SUFFIXES:
            if suffix in suffixes or made_by_a_run(staged, suffix, storage=kept):
                made = Companion(staged, suffix, run_id=run_id, mode=mode, storage=kept)
                companions.append(stack.enter_context(made))
                if suffix in suffixes:
                    put(made.staging_path, run_id)
                    made.rows = 1
        put(staged.staging_path, run_id)
        publish_together(staged, companions, run_id=run_id, job="job")


def state(output: Path) -> tuple[str | None, ...]:
    """What is in the output and in its companions."""
    parts = [Path(f"{output}{suffix}") / "part-0" for suffix in ("", *SUFFIXES)]
    return tuple(part.read_text() if part.exists() else None for part in parts)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


FORMERS = [None, (), (REJECTS,), SUFFIXES]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("new", [(), (REJECTS,), (BAD_ROWS, REJECTS)], ids=["none", "rejects", "both"])
@pytest.mark.parametrize("former", FORMERS, ids=["first", "alone", "rejects", "both"])
def test_dead_at_each_storage_call(
    tmp_path: Path, former: tuple[str, ...] | None, new: tuple[str, ...], when: str
) -> None:
    def whole(run_id: str, suffixes: tuple[str, ...]) -> tuple[str | None, ...]:
        return (run_id, *(run_id if suffix in suffixes else None for suffix in SUFFIXES))

    before = (None, None, None) if former is None else whole("r1", former)
    after = whole("r2", new)
    for call in range(1, 300):
        output = tmp_path / str(call) / "out"
        output.parent.mkdir()
        if former is not None:
            run(output, "r1", *former)
        try:
            run(output, "r2", *new, storage=StopsAtCall(call, when, die))
        except Dead:
            seen = state(output)
            if seen not in (before, after) and seen[0] is not None:
                # Between two renames: whoever looks can tell that a companion is of another run.
                for suffix, text in zip(SUFFIXES, seen[1:], strict=True):
                    folder = f"{output}{suffix}"
                    assert text is None or run_of(folder, storage=LocalStorage()) == text, call
            if seen[0] is None:
                restore_if_interrupted(str(output), storage=LocalStorage())
            with StagedOutput(str(output), run_id="r3", mode="overwrite", storage=LocalStorage()):
                pass  # it fails, and publishes nothing
            assert state(output) in (before, after), (call, seen)
            assert not [name for name in names(output.parent) if name.startswith(".")], call
        else:
            assert state(output) == after
            assert call > 10
            return
    raise AssertionError("never came through")


def test_the_run_is_named_in_both_and_only_where_something_belongs_to_an_output(tmp_path: Path) -> None:
    output = tmp_path / "out"
    run(output, "r1")
    assert not (output / RUN_FILE).exists()
    run(output, "r2", REJECTS)
    assert [run_of(f"{output}{suffix}", storage=LocalStorage()) for suffix in ("", REJECTS)] == ["r2", "r2"]
    assert (output / RUN_FILE).read_text() == '{"run_id": "r2", "job": "job"}'
    run(output, "r3")
    assert state(output) == ("r3", None, None)
    assert names(tmp_path) == ["out"]


def test_a_failure_to_publish_takes_companions_back(tmp_path: Path) -> None:
    output = tmp_path / "out"
    run(output, "r1", REJECTS)

    class Full(LocalStorage):
        def rename(self, source: str, *, target: str) -> None:
            if target == str(output):
                raise OSError(28, "No space left on device", target)
            super().rename(source, target=target)

    with pytest.raises(OSError, match="No space left"):
        run(output, "r2", REJECTS, BAD_ROWS, storage=Full())
    assert state(output) in [("r1", "r1", None), (None, "r1", None)]
    with StagedOutput(str(output), run_id="r3", mode="overwrite", storage=LocalStorage()):
        pass
    assert state(output) == ("r1", "r1", None)


def test_nothing_staged_is_not_published_with_the_runs_name_alone(tmp_path: Path) -> None:
    output, storage = tmp_path / "out", LocalStorage()
    with (
        StagedOutput(str(output), run_id="r1", mode="error", storage=storage) as staged,
        Companion(staged, REJECTS, run_id="r1", mode="error", storage=storage) as made,
    ):
        put(made.staging_path, "r1")
        made.rows = 1
        with pytest.raises(EngineError, match="no file"):
            publish_together(staged, [made], run_id="r1", job="job")
    assert names(tmp_path) == []


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_what_no_run_has_written_is_not_replaced(tmp_path: Path, mode: str) -> None:
    output = tmp_path / "out"
    put(f"{output}.rejects", "mine")
    (tmp_path / "out.bad-rows").write_text("mine")
    for suffix in SUFFIXES:
        with pytest.raises(OutputExistsError, match=r"what no run has written.*move it away"):
            run(output, "r1", suffix, mode=mode)
    run(output, "r1", mode=mode)  # nobody says that they belong to a run
    assert state(output) == ("r1", "mine", None)
    assert (tmp_path / "out.bad-rows").read_text() == "mine"


def test_one_of_a_run_is_replaced_when_asked_and_never_when_it_is_read(tmp_path: Path) -> None:
    output, storage = tmp_path / "out", LocalStorage()
    run(output, "r1", BAD_ROWS)
    shutil.rmtree(output)
    with pytest.raises(OutputExistsError, match=r"out\.bad-rows.*add --mode overwrite"):
        run(output, "r2", BAD_ROWS, mode="error")
    run(output, "r2", BAD_ROWS)
    assert state(output) == ("r2", None, "r2")
    with (
        StagedOutput(str(output), run_id="r3", mode="overwrite", storage=storage) as staged,
        pytest.raises(UsageError, match="bad-rows"),
    ):
        read = [f"{output}.bad-rows"]
        Companion(staged, BAD_ROWS, run_id="r3", mode="overwrite", storage=storage, inputs=read)
    assert state(output) == ("r2", None, "r2")


@pytest.mark.parametrize("call", range(1, 60))
def test_beside_what_a_link_leads_to(tmp_path: Path, call: int) -> None:
    real, link = tmp_path / "real" / "out", tmp_path / "link"
    real.parent.mkdir()
    run(real, "r1", REJECTS)
    link.symlink_to(real)
    with suppress(Dead):
        run(link, "r2", REJECTS, storage=StopsAtCall(call, "after", die))
    run(link, "r3", REJECTS)
    assert state(real) == ("r3", "r3", None)
    assert names(real.parent) == ["out", "out.rejects"]
    assert names(tmp_path) == ["link", "real"]


def test_an_output_of_such_a_name_is_nobodys_companion(tmp_path: Path) -> None:
    """What a run on `a` cleans up never belongs to a run on `a.rejects`, dead or alive."""
    output, storage = tmp_path / "a.rejects", LocalStorage()
    with StagedOutput(str(output), run_id="r1", mode="error", storage=storage) as staged:
        put(staged.staging_path, "r1")
        run(tmp_path / "a", "r2")
        staged.publish()
    output.rename(tmp_path / ".a.rejects.old-r3")  # a run on it died between its two renames
    run(tmp_path / "a", "r4")
    assert restore_if_interrupted(str(output), storage=storage)
    assert (output / "part-0").read_text() == "r1"
