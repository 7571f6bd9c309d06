"""An output and the folders that belong to it: of one run both, wherever the process dies."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from common.core.errors import EngineError, OutputExistsError
from common.engine.storage import LocalStorage
from common.runs.companions import BAD_ROWS, REJECTS, Companion, made_by_a_run, publish_together
from common.runs.recovery import RUN_FILE, restore_if_interrupted, run_of
from common.runs.staging import StagedOutput

SUFFIXES = (REJECTS, BAD_ROWS)


class Dead(BaseException):
    """What a process that was killed cannot catch, since it does nothing any more."""


class DiesAtCall:
    """A storage that does nothing from its k-th call on, which it still does when `when` is "after"."""

    def __init__(self, call: int, when: str) -> None:
        self._left, self._when, self._storage = call, when, LocalStorage()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._storage, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left == 0 and self._when == "after":
                method(*args, **kwargs)
            if self._left <= 0:
                raise Dead
            return method(*args, **kwargs)

        return counted


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
            run(output, "r2", *new, storage=DiesAtCall(call, when))
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


def test_a_companion_that_is_there_is_replaced_only_when_asked(tmp_path: Path) -> None:
    output = tmp_path / "out"
    put(f"{output}.rejects", "mine")
    with pytest.raises(OutputExistsError, match=r"out\.rejects"):
        run(output, "r1", REJECTS, mode="error")
    assert state(output) == (None, "mine", None)
    run(output, "r1", mode="error")  # nobody says that it belongs to a run
    assert state(output) == ("r1", "mine", None)
    run(output, "r2", REJECTS)
    assert state(output) == ("r2", "r2", None)
