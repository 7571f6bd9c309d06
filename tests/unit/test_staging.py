"""What a staged output refuses, where it writes, and what it leaves."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from common.core.errors import (
    EngineError,
    LockedError,
    OutputExistsError,
    OutputUnwritableError,
    ParameterError,
    UsageError,
)
from common.engine.storage import FileEntry, LocalStorage
from common.runs import locking
from common.runs.overlap import refuse_overlap
from common.runs.recovery import restore_if_interrupted
from common.runs.staging import StagedOutput
from common.runs.targets import Target

OLD = {"part-00000": "old", "_SUCCESS": ""}
NEW = {"day=1/part-00000": "new", "_SUCCESS": ""}


def write(folder: Path | str, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def tree(folder: Path) -> dict[str, str]:
    return {str(f.relative_to(folder)): f.read_text() for f in folder.rglob("*") if f.is_file()}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def staged_output(
    target: Path | str,
    mode: Literal["error", "overwrite"] = "error",
    *,
    run_id: str = "r1",
    storage: Any = None,
    inputs: Sequence[str] = (),
) -> StagedOutput:
    return StagedOutput(
        str(target), run_id=run_id, mode=mode, storage=storage or LocalStorage(), inputs=inputs
    )


def work(
    target: Path | str,
    act: Callable[[StagedOutput], object],
    mode: Literal["error", "overwrite"] = "error",
    files: dict[str, str] = NEW,
    **options: Any,
) -> None:
    with staged_output(target, mode, **options) as staged:
        write(staged.staging_path, files)
        act(staged)


def publish(target: Path | str, mode: Literal["error", "overwrite"] = "error", **options: Any) -> None:
    work(target, StagedOutput.publish, mode, **options)


def fail(staged: StagedOutput) -> None:
    raise ValueError("the work")


# --- the straight way


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_a_first_output(tmp_path: Path, mode: Literal["error", "overwrite"]) -> None:
    with staged_output(tmp_path / "out", mode) as staged:
        assert staged.staging_path == f"{tmp_path}/.out.staging-r1"
        assert not Path(staged.staging_path).exists()
        write(staged.staging_path, NEW)
        assert not (tmp_path / "out").exists()
        assert not staged.published
        staged.publish()
        assert staged.published
        assert tree(tmp_path / "out") == NEW
    assert names(tmp_path) == ["out"]


def test_overwriting_replaces_the_whole_folder_and_only_when_published(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write(out, OLD | {"day=0/part-00000": "a day that is not written again"})
    with staged_output(out, "overwrite") as staged:
        write(staged.staging_path, NEW)
        assert tree(out)["part-00000"] == "old"
        staged.publish()
    assert tree(out) == NEW
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, None])
def test_leaving_without_publishing_leaves_no_trace(
    tmp_path: Path, failure: type[BaseException] | None
) -> None:
    out = tmp_path / "out"
    write(out, OLD)

    def end(staged: StagedOutput) -> None:
        if failure is not None:
            raise failure

    with pytest.raises(failure) if failure is not None else nullcontext():
        work(out, end, "overwrite")
    assert tree(out) == OLD
    assert names(tmp_path) == ["out"]
    publish(out, "overwrite", run_id="r2")
    assert tree(out) == NEW


def test_a_failure_after_publishing_keeps_the_new_output(tmp_path: Path) -> None:
    def publish_and_fail(staged: StagedOutput) -> None:
        staged.publish()
        raise ValueError("later")

    with pytest.raises(ValueError, match="later"):
        work(tmp_path / "out", publish_and_fail)
    assert tree(tmp_path / "out") == NEW
    assert names(tmp_path) == ["out"]


# --- folders above


def test_missing_folders_above_are_made(tmp_path: Path) -> None:
    publish(tmp_path / "a" / "b" / "out")
    assert tree(tmp_path / "a" / "b" / "out") == NEW


def test_folders_made_for_a_failed_run_go_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ValueError, match="the work"):
        work(tmp_path / "a" / "b" / "c" / "out", fail)
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == []


def test_a_folder_that_another_run_uses_by_now_stays(tmp_path: Path) -> None:
    with staged_output(tmp_path / "a" / "out") as staged:
        write(staged.staging_path, NEW)
        publish(tmp_path / "a" / "other", run_id="r2")
    assert names(tmp_path / "a") == ["other"]


def test_a_folder_removed_before_the_lock_is_opened_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Racing(LocalStorage):
        count = 0

        def make_folders(self, path: str) -> None:
            super().make_folders(path)
            self.count += 1
            if self.count == 1:
                Path(path).rmdir()

    storage = Racing()
    publish(tmp_path / "a" / "out", storage=storage)
    assert storage.count == 2
    assert tree(tmp_path / "a" / "out") == NEW


# --- what is there already


@pytest.mark.parametrize("files", [OLD, {}], ids=["filled", "empty"])
def test_mode_error_refuses_an_existing_output_before_the_work(tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / "out").mkdir()
    write(tmp_path / "out", files)
    with (
        pytest.raises(OutputExistsError, match="--mode overwrite") as caught,
        staged_output(tmp_path / "out"),
    ):
        pytest.fail("the work has begun")
    assert caught.value.exit_code == 3
    assert tree(tmp_path / "out") == files
    assert names(tmp_path) == ["out"]


def test_mode_error_refuses_an_output_that_appears_while_it_works(tmp_path: Path) -> None:
    def publish_late(staged: StagedOutput) -> None:
        write(tmp_path / "out", OLD)
        staged.publish()

    with pytest.raises(OutputExistsError, match="--mode overwrite"):
        work(tmp_path / "out", publish_late)
    assert tree(tmp_path / "out") == OLD
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_an_output_that_appears_between_the_check_and_the_rename_is_not_touched(
    tmp_path: Path, mode: Literal["error", "overwrite"]
) -> None:
    class Racing(LocalStorage):
        def rename(self, source: str, *, target: str) -> None:
            write(tmp_path / "out", OLD)
            super().rename(source, target=target)

    with pytest.raises(OutputExistsError, match="at this moment"):
        publish(tmp_path / "out", mode, storage=Racing())
    assert tree(tmp_path / "out") == OLD
    assert names(tmp_path) == ["out"]


def test_mode_error_refuses_an_output_that_only_an_interruption_hid(tmp_path: Path) -> None:
    write(tmp_path / ".out.old-r0", OLD)
    with pytest.raises(OutputExistsError), staged_output(tmp_path / "out"):
        pytest.fail("the work has begun")
    assert tree(tmp_path / "out") == OLD


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_a_file_is_never_replaced_by_a_folder(tmp_path: Path, mode: Literal["error", "overwrite"]) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(OutputExistsError, match="a file of that name"), staged_output(tmp_path / "out", mode):
        pytest.fail("the work has begun")
    assert (tmp_path / "out").read_text() == "mine"
    assert names(tmp_path) == ["out"]


def test_the_same_output_twice_in_one_process(tmp_path: Path) -> None:
    with staged_output(tmp_path / "out") as first:
        write(first.staging_path, NEW)
        with (
            pytest.raises(LockedError, match=rf"run r1 \(pid {os.getpid()}\)"),
            staged_output(tmp_path / "out", run_id="r2"),
        ):
            pytest.fail("the work has begun")
        publish(tmp_path / "out2", run_id="r2")
        first.publish()
    assert tree(tmp_path / "out") == tree(tmp_path / "out2") == NEW


# --- what may not be published


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "no file"),
        ({".part-00000.crc": "x", "day=1/.hidden": "x"}, "no file"),
        ({"_temporary/0/task_1/part-00000": "x", "part-00000": "x"}, "_temporary"),
        ({".spark-staging-1/part-00000": "x", "_SUCCESS": ""}, ".spark-staging-1"),
    ],
)
@pytest.mark.parametrize("made", [True, False])
def test_an_unfinished_write_is_not_published(
    tmp_path: Path, files: dict[str, str], reason: str, made: bool
) -> None:
    write(tmp_path / "out", OLD)

    def publish_anyway(staged: StagedOutput) -> None:
        if made:
            (Path(staged.staging_path) / "day=0").mkdir(parents=True)
        staged.publish()

    with pytest.raises(EngineError, match=reason) as caught:
        work(tmp_path / "out", publish_anyway, "overwrite", files=files)
    assert caught.value.exit_code == 4
    assert tree(tmp_path / "out") == OLD
    assert names(tmp_path) == ["out"]


def test_zero_rows_are_an_output(tmp_path: Path) -> None:
    publish(tmp_path / "out", files={"_SUCCESS": ""})
    assert tree(tmp_path / "out") == {"_SUCCESS": ""}


def test_publishing_twice_is_refused_and_keeps_the_output(tmp_path: Path) -> None:
    def publish_twice(staged: StagedOutput) -> None:
        staged.publish()
        staged.publish()

    with pytest.raises(EngineError, match="no file"):
        work(tmp_path / "out", publish_twice, "overwrite")
    assert tree(tmp_path / "out") == NEW


# --- failing file systems


class Failing(LocalStorage):
    """Fails at the n-th rename."""

    def __init__(self, at: int, number: int) -> None:
        self.left, self.number = at, number

    def rename(self, source: str, *, target: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(self.number, os.strerror(self.number), source)
        super().rename(source, target=target)


@pytest.mark.parametrize("at", [1, 2])
def test_a_rename_that_is_not_allowed_brings_the_former_output_back(tmp_path: Path, at: int) -> None:
    write(tmp_path / "out", OLD)
    with pytest.raises(OutputUnwritableError, match="permission denied") as caught:
        publish(tmp_path / "out", "overwrite", storage=Failing(at, errno.EPERM))
    assert caught.value.exit_code == 3
    assert tree(tmp_path / "out") == OLD
    assert names(tmp_path) == ["out"]


def test_a_full_disk_passes_as_it_is_after_cleaning_up(tmp_path: Path) -> None:
    write(tmp_path / "out", OLD)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill(staged: StagedOutput) -> None:
        raise full

    with pytest.raises(OSError, match="No space") as caught:
        work(tmp_path / "out", fill, "overwrite")
    assert caught.value is full
    assert tree(tmp_path / "out") == OLD
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("at", [1, 2])
def test_a_full_disk_while_publishing(tmp_path: Path, at: int) -> None:
    write(tmp_path / "out", OLD)
    with pytest.raises(OSError, match="No space") as caught:
        publish(tmp_path / "out", "overwrite", storage=Failing(at, errno.ENOSPC))
    assert caught.value.errno == errno.ENOSPC
    assert not isinstance(caught.value, OutputUnwritableError)
    assert tree(tmp_path / "out") == OLD
    assert names(tmp_path) == ["out"]


def test_a_disk_too_full_for_the_lock_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(json, "dumps", full)
        with pytest.raises(OSError, match="No space"):
            publish(tmp_path / "a" / "out")
    assert names(tmp_path) == []
    publish(tmp_path / "a" / "out")
    assert tree(tmp_path / "a" / "out") == NEW


def test_a_failure_to_clean_up_does_not_hide_the_failure_of_the_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Burning(LocalStorage):
        def exists(self, path: str) -> bool:
            if ".old-" in path:
                raise OSError(errno.EIO, "disk on fire", path)
            return super().exists(path)

    with pytest.raises(ValueError, match="the work"):
        work(tmp_path / "out", fail, storage=Burning())
    assert "disk on fire" in caplog.text
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EROFS, "a read-only file system"),
        (errno.ENOLCK, "no file locks"),
        (errno.EACCES, "permission denied"),
    ],
)
def test_a_folder_that_cannot_be_written_is_found_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    def refuse(*_: object, **__: object) -> bool:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locking, "lock_descriptor", refuse)
    with pytest.raises(OutputUnwritableError, match=reason), staged_output(tmp_path / "out"):
        pytest.fail("the work has begun")


def as_nobody(act: Callable[[], None]) -> str:
    """What `act` raises for a user without rights, as "Kind: text"; run in a child when we are root."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing was raised"
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            act()
        except BaseException as error:  # noqa: BLE001  the parent judges it
            said = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("inside", ["out", "a/b/out"])
def test_permission_denied(inside: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # the test's own folder is closed to other users
        folder = Path(name)
        folder.chmod(0o555)
        said = as_nobody(lambda: publish(folder / inside))
        assert said.startswith("OutputUnwritableError: [OUTPUT_UNWRITABLE]")
        assert "permission denied" in said
        assert names(folder) == []
        folder.chmod(0o755)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_reader_without_rights_is_told_why_nothing_is_there() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / ".out.old-r1", OLD)
        folder.chmod(0o555)

        def read() -> None:
            restore_if_interrupted(str(folder / "out"), storage=LocalStorage())

        assert as_nobody(read).startswith("OutputUnwritableError")
        folder.chmod(0o755)


def test_a_file_where_a_folder_above_should_be(tmp_path: Path) -> None:
    (tmp_path / "file.csv").write_text("a,b")
    with pytest.raises(OutputUnwritableError, match="a file above it"):
        publish(tmp_path / "file.csv" / "out")
    with pytest.raises(OutputUnwritableError, match="a file above it"):
        publish(tmp_path / "file.csv" / "deep" / "out")
    assert (tmp_path / "file.csv").read_text() == "a,b"


# --- names


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        " lead",
        "tägliche Ausgabe ✓",
        "e\u0301",
        ".hidden",
        "..two",
        "a%20b",
        "x=1,y={2}",
        "[1]*?",
        "a:b",
        "~",
    ],
)
def test_any_name(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, OLD)
    publish(tmp_path / name, "overwrite")
    assert names(tmp_path) == [name]
    assert tree(tmp_path / name) == NEW


@pytest.mark.parametrize(
    "spelling", ["{}/out", "{}/out/", "{}/out//", "{}//x/../out/.", "file:{}/out", "file://{}/out/"]
)
def test_any_spelling_is_the_same_place(tmp_path: Path, spelling: str) -> None:
    write(tmp_path / "out", OLD)
    publish(spelling.format(tmp_path), "overwrite")
    assert names(tmp_path) == ["out"]
    assert tree(tmp_path / "out") == NEW


def test_relative_to_where_the_run_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with staged_output("out") as staged:
        monkeypatch.chdir("elsewhere")
        write(staged.staging_path, NEW)
        staged.publish()
    assert tree(tmp_path / "out") == NEW


def test_a_link_is_followed_and_locks_what_it_points_to(tmp_path: Path) -> None:
    real, link = tmp_path / "disk" / "real", tmp_path / "link"
    write(real, OLD)
    link.symlink_to(real)
    with staged_output(link, "overwrite") as staged:
        assert staged.staging_path == f"{tmp_path}/disk/.real.staging-r1"
        with pytest.raises(LockedError):
            publish(real, "overwrite", run_id="r2")
        write(staged.staging_path, NEW)
        staged.publish()
    assert link.is_symlink()
    assert tree(real) == tree(link) == NEW
    assert names(tmp_path) == ["disk", "link"]
    assert names(tmp_path / "disk") == ["real"]


def test_a_link_to_nothing_gets_its_folder_and_a_circle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    publish(tmp_path / "link")
    assert tree(tmp_path / "real") == NEW
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(UsageError, match="leads back to itself"):
        staged_output(tmp_path / "a")


@pytest.mark.parametrize(
    "target", [".", "./", "..", "../here", "/", "//", "file:///", "s3a://bucket", "s3a://bucket/"]
)
def test_what_must_never_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(UsageError, match="replaced as a whole") as caught:
        staged_output(target, "overwrite")
    assert caught.value.exit_code == 2
    assert f"`{target}`" in str(caught.value)


def test_the_home_folder_and_mount_points_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "people" / "me"))
    for place in ("people", "people/me"):
        with pytest.raises(UsageError, match="the home folder"):
            staged_output(tmp_path / place, "overwrite")
    publish(tmp_path / "people" / "me" / "out")
    with pytest.raises(UsageError, match="a mount point"):
        staged_output("/proc", "overwrite")


@pytest.mark.parametrize("target", ["", "  "])
def test_an_empty_path(target: str) -> None:
    with pytest.raises(UsageError):
        staged_output(target)


@pytest.mark.parametrize("run_id", ["", "a/b", "a.b", "..", "-a", "a b", "é", "a\n"])
def test_run_ids_that_would_break_the_names(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(ParameterError, match="run_id"):
        staged_output(tmp_path / "out", run_id=run_id)


def test_a_name_too_long_for_its_own_staging_folder(tmp_path: Path) -> None:
    # 255 bytes a name on common file systems; the dot, ".staging-" and "r1" take 12 of them.
    publish(tmp_path / ("ä" * 121 + "x"))
    with pytest.raises(UsageError, match="at most 243 bytes, got 244 bytes"):
        staged_output(tmp_path / ("ä" * 122))
    assert names(tmp_path) == ["ä" * 121 + "x"]


# --- inputs


@pytest.mark.parametrize(
    ("target", "given", "relation"),
    [
        ("in", "in", "the same as"),
        ("in/", "./in//", "the same as"),
        ("in/out", "in", "a folder inside"),
        ("a", "a/b/in", "a folder that holds"),
        ("in/day=2", "in/day=*", "the same as"),
        ("in/day=2/x", "in/day=?", "a folder inside"),
        ("in", "in/*/*.csv", "a folder that holds"),
        ("in/part-[0-9]", "in/part-[0-9]", "the same as"),
        ("in/a/out", "in/**/*.csv", "a folder inside"),
        ("hdfs:/a", "hdfs:///a/b", "a folder that holds"),
        ("link", "real", "the same as"),
        ("real/out", "link", "a folder inside"),
        ("real", "link/in.csv", "a folder that holds"),
        ("real", "li*", "the same as"),
        ("real", "file:{}/link", "the same as"),
        ("hdfs://nn/a/out", "hdfs://NN/a/", "a folder inside"),
        ("s3a://b/x", "s3://b/x/y", "a folder that holds"),
        ("hdfs://nn/a", "hdfs://nn/./a/../a", "the same as"),
    ],
)
def test_an_output_that_overlaps_an_input_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, given: str, relation: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write("real", OLD)
    Path("link").symlink_to("real")
    given = given.format(tmp_path)
    with pytest.raises(UsageError) as caught:
        refuse_overlap(target, ["elsewhere", given])
    assert f"got {relation} input `{given}`" in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("target", "given"),
    [
        ("in2", "in"),
        ("in", "in2"),
        ("in/out", "in/*.csv"),
        ("in/day=10", "in/day=?"),
        ("in/_tmp/x", "in/*/x"),
        ("IN", "in"),
        ("out", "table:db.out"),
        ("hdfs://nn/a", "hdfs://other/a"),
        ("hdfs://nn/a", "s3a://nn/a"),
        ("hdfs://nn/a", "/a"),
        ("/a", "hdfs://nn/a"),
    ],
)
def test_an_output_beside_the_inputs_is_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, given: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write("in", OLD)
    refuse_overlap(target, [given])
    assert Target.of(target).name == target.rstrip("/").rpartition("/")[2]


def test_the_same_folder_by_two_names_is_told_by_its_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bind mount, or a file system that ignores case: another path, the same device and inode."""
    (tmp_path / "data").mkdir()
    real = Path.stat

    def stat(self: Path, **options: Any) -> os.stat_result:
        return real(tmp_path / "data" if self.name == "DATA" else self, **options)

    monkeypatch.setattr(Path, "stat", stat)
    for target, given, relation in [
        ("DATA", "data", "the same as"),
        ("DATA", "data/in", "a folder that holds"),
        ("DATA/out", "data", "a folder inside"),
    ]:
        with pytest.raises(UsageError, match=relation):
            refuse_overlap(str(tmp_path / target), [str(tmp_path / given)])
    refuse_overlap(str(tmp_path / "DATA" / "out"), [str(tmp_path / "data" / "in")])


def test_a_run_that_would_replace_what_it_reads_does_not_begin(tmp_path: Path) -> None:
    write(tmp_path / "days" / "day=2", OLD)
    with pytest.raises(UsageError, match="apart from all inputs"):
        staged_output(tmp_path / "days" / "day=2", "overwrite", inputs=[str(tmp_path / "days" / "*")])
    assert tree(tmp_path / "days" / "day=2") == OLD


# --- remote storages


class Elsewhere(LocalStorage):
    """A remote storage, kept in a local folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def _at(self, path: str) -> str:
        return str(self.root) + path.removeprefix("far://host")

    def exists(self, path: str) -> bool:
        return super().exists(self._at(path))

    def entry(self, path: str) -> FileEntry:
        return replace(super().entry(self._at(path)), path=path)

    def children(self, path: str) -> Sequence[FileEntry]:
        return [replace(each, path=f"{path}/{each.name}") for each in super().children(self._at(path))]

    def rename(self, source: str, *, target: str) -> None:
        super().rename(self._at(source), target=self._at(target))

    def delete_tree(self, path: str) -> None:
        super().delete_tree(self._at(path))


def test_a_remote_output_without_a_lock(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    storage = Elsewhere(tmp_path)
    write(tmp_path / "out", OLD)
    write(tmp_path / ".out.staging-r1", {"half": "an earlier attempt of this run"})
    write(tmp_path / ".out.staging-r9", {"half": "of a run that may be alive"})
    with staged_output("far://host/out/", "overwrite", storage=storage) as staged:
        assert staged.staging_path == "far://host/.out.staging-r1"
        assert names(tmp_path) == [".out.staging-r9", "out"]
        write(tmp_path / ".out.staging-r1", NEW)
        staged.publish()
    assert tree(tmp_path / "out") == NEW
    assert names(tmp_path) == [".out.staging-r9", "out"]
    assert "far://host/.out.staging-r9" in caplog.text


def test_a_remote_output_is_restored_and_a_failed_run_leaves_nothing(tmp_path: Path) -> None:
    storage = Elsewhere(tmp_path)
    write(tmp_path / ".out.old-r0", OLD)
    assert restore_if_interrupted("far://host/out", storage=storage)
    assert tree(tmp_path / "out") == OLD

    def write_and_fail(staged: StagedOutput) -> None:
        write(tmp_path / ".out.staging-r1", NEW)
        raise ValueError("the work")

    with pytest.raises(ValueError, match="the work"):
        work("far://host/out", write_and_fail, "overwrite", files={}, storage=storage)
    assert names(tmp_path) == ["out"]


def test_a_remote_refusal_without_an_error_number(tmp_path: Path) -> None:
    class Guarded(Elsewhere):
        def rename(self, source: str, *, target: str) -> None:
            raise PermissionError(f"{source}: AccessControlException")

    def write_and_publish(staged: StagedOutput) -> None:
        write(tmp_path / ".out.staging-r1", NEW)
        staged.publish()

    with pytest.raises(OutputUnwritableError, match="permission denied"):
        work("far://host/out", write_and_publish, files={}, storage=Guarded(tmp_path))
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "files",
    [
        {"thesis.txt": "years of work", "sub/more.txt": "x"},
        {"date=2013-01-01/part-00000.parquet": "data that no run published"},
    ],
)
def test_a_folder_that_no_run_has_written_is_not_overwritten(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path / "out", files)
    words = r"with what no run has written .*empty this one yourself"
    with pytest.raises(OutputExistsError, match=words), staged_output(tmp_path / "out", "overwrite"):
        raise AssertionError("not reached")
    assert tree(tmp_path / "out") == files


@pytest.mark.parametrize("files", [{}, {"part-00000.csv": "x"}, {"day=1/part-00000": "x", "_SUCCESS": ""}])
def test_what_a_run_leaves_is_overwritten(tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / "out").mkdir()
    write(tmp_path / "out", files)
    with staged_output(tmp_path / "out", "overwrite") as output:
        write(output.staging_path, NEW)
        output.publish()
    assert tree(tmp_path / "out") == NEW


def test_a_restart_keeps_nothing_of_the_first_attempt(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with StagedOutput(str(output), run_id="r1", mode="error", storage=LocalStorage()) as staged:
        write(staged.staging_path, {"part-00007": "half"})
        staged.restart()
        write(staged.staging_path, NEW)
        staged.publish()
    assert tree(output) == NEW
    assert names(tmp_path) == ["out"]
