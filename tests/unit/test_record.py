from __future__ import annotations

import json
import os
import platform
import re
import stat
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import common
from common.core.errors import (
    ColumnMissingError,
    DifferenceError,
    FileCorruptError,
    FileUnreadableError,
    Interrupted,
    LockedError,
    ParameterError,
    PathAbsentError,
    SeveralErrors,
    UsageError,
)
from common.runs.record import RunRecord, default_runs_dir, load_record, new_run_id
from common.tuning.decision import Decision


def test_run_ids_sort_by_start_and_differ() -> None:
    moment = datetime(2026, 12, 2, 1, 27, tzinfo=timezone(timedelta(hours=2)))
    first, again = new_run_id(moment), new_run_id(moment)
    assert re.fullmatch(r"20261201T232700Z-[0-9a-f]{6}", first)
    assert first != again
    assert first < new_run_id(moment + timedelta(seconds=1))


def test_a_started_run_is_on_disk_as_running(tmp_path: Path) -> None:
    record = RunRecord.start("topn", runs_dir=tmp_path / "new" / "runs", arguments=["--n", "10"])
    assert record.path == tmp_path / "new" / "runs" / f"{record.run_id}-topn.json"
    content = load_record(record.path)
    assert content["schema_version"] == 1
    assert (content["job"], content["arguments"], content["pid"]) == ("topn", ["--n", "10"], os.getpid())
    assert content["host"] == platform.node()
    assert content["outcome"] == {"status": "running", "exit_code": None, "phase": None, "error": None}
    assert (content["finished_at"], content["total_seconds"]) == (None, None)
    assert content["versions"]["suite"] == common.__version__
    assert content["versions"]["python"] == platform.python_version()
    assert datetime.fromisoformat(content["started_at"]).tzinfo == UTC


def test_a_finished_run_holds_all_that_was_told(tmp_path: Path) -> None:
    record = RunRecord.start("topn", runs_dir=str(tmp_path))
    record.configuration = {"spark.sql.shuffle.partitions": "7"}
    record.add_not_applied(
        "spark.driver.memory", asked="4g", effective="1g", why="set before the session began"
    )
    record.versions = {"spark": "4.1.3"}
    record.application_id, record.ui_address = "local-1", "http://h:4040"
    record.inputs.append({"name": "input", "paths": ("a",), "size_bytes": 5})
    record.decisions.append(
        Decision("sort", "10 rows", (("window", "one task"),), {"n": 10}, ("D5",)).record()
    )
    record.counters["bad_rows"] = 2
    record.rows_in, record.rows_out = 336776, 10
    record.verification = {"same": True}
    record.output = {"path": "out", "files": 1}
    with record.phase("read"):
        pass
    path = record.finish()
    content = load_record(path)
    assert content["configuration"] == {"spark.sql.shuffle.partitions": "7"}
    assert content["not_applied"] == [
        {
            "key": "spark.driver.memory",
            "asked": "4g",
            "effective": "1g",
            "why": "set before the session began",
        }
    ]
    assert content["versions"]["spark"] == "4.1.3"
    assert content["versions"]["suite"] == common.__version__
    assert content["versions"]["plugin"] is None
    assert (content["application_id"], content["ui_address"]) == ("local-1", "http://h:4040")
    assert content["inputs"] == [{"name": "input", "paths": ["a"], "size_bytes": 5}]
    assert content["decisions"][0]["rejected"] == [["window", "one task"]]
    assert content["counters"] == {"bad_rows": 2}
    assert (content["rows_in"], content["rows_out"]) == (336776, 10)
    assert (content["verification"], content["output"]) == ({"same": True}, {"path": "out", "files": 1})
    assert list(content["seconds"]) == ["read"]
    assert content["outcome"] == {"status": "ok", "exit_code": 0, "phase": None, "error": None}
    assert content["finished_at"] >= content["started_at"]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_phases_add_up_and_the_failing_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.5, 10.0, 12.0, 20.0, 21.0, 25.0, 29.0])
    record = RunRecord.start("topn", runs_dir=tmp_path)
    monkeypatch.setattr("common.runs.record.time.monotonic", lambda: next(now))
    for _ in range(2):
        with record.phase("read"):
            pass
    error = ParameterError("flag", "--n", expected=">= 0", got="-1")
    with pytest.raises(ParameterError), record.phase("write"), record.phase("publish"):
        raise error
    monkeypatch.undo()
    content = load_record(record.finish(error))
    assert content["seconds"] == {"read": 3.5, "publish": 4.0, "write": 9.0}
    assert content["outcome"]["phase"] == "publish"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ParameterError("flag", "--n", expected=">= 0", got="-1"), "failed", 2),
        (ColumnMissingError("column", "x", expected="a column", got="none"), "failed", 3),
        (LockedError("output", "o", expected="no other run", got="run r"), "failed", 5),
        (DifferenceError("answer", "topn", expected="1", got="2"), "different", 6),
        (ZeroDivisionError("division by zero"), "failed", 1),
        (Interrupted(15), "interrupted", 143),
        (KeyboardInterrupt(), "interrupted", 130),
    ],
)
def test_the_outcome_follows_from_the_error(
    tmp_path: Path, error: BaseException, status: str, code: int
) -> None:
    outcome = load_record(RunRecord.start("topn", runs_dir=tmp_path).finish(error))["outcome"]
    assert (outcome["status"], outcome["exit_code"]) == (status, code)
    assert outcome["error"]["type"] == type(error).__name__


def test_an_error_is_stored_as_data_with_its_cause(tmp_path: Path) -> None:
    error = ParameterError("flag", "--n", expected=">= 0", got="-1", hint="do b")
    error.__cause__ = OSError(28, "No space left")
    stored = load_record(RunRecord.start("topn", runs_dir=tmp_path).finish(error))["outcome"]["error"]
    assert (stored["condition"], stored["what"], stored["hint"]) == ("PARAMETER_INVALID", "flag", "do b")
    assert stored["text"] == "[PARAMETER_INVALID] flag `--n`: expected >= 0, got -1. Hint: do b."
    assert stored["cause"]["text"] == "[Errno 28] No space left"
    assert "traceback" not in stored


def test_a_bug_keeps_its_traceback_and_several_errors_each_sentence(tmp_path: Path) -> None:
    stored = load_record(RunRecord.start("topn", runs_dir=tmp_path).finish(ValueError("x")))["outcome"][
        "error"
    ]
    assert "ValueError: x" in stored["traceback"]
    several = SeveralErrors(UsageError("flag", name, expected="a", got="b") for name in ("--x", "--y"))
    stored = load_record(RunRecord.start("topn", runs_dir=tmp_path).finish(several))["outcome"]["error"]
    assert [problem["name"] for problem in stored["problems"]] == ["--x", "--y"]


def test_the_caller_may_tell_status_code_and_error(tmp_path: Path) -> None:
    record = RunRecord.start("audit", runs_dir=tmp_path)
    told = {"condition": "INTERNAL", "got": "x"}
    outcome = load_record(record.finish(told, status="failed", exit_code=4))["outcome"]
    assert outcome == {"status": "failed", "exit_code": 4, "phase": None, "error": told}
    assert load_record(record.finish(exit_code=1))["outcome"]["exit_code"] == 1


def test_no_secret_is_written(tmp_path: Path) -> None:
    record = RunRecord.start(
        "topn",
        runs_dir=tmp_path,
        arguments=[
            "--db-password",
            "hunter2",
            "--conf",
            "spark.x.secret=hunter2",
            "--input",
            "s3a://a:hunter2@b/p",
        ],
        configuration={"spark.hadoop.fs.s3a.secret.key": "hunter2", "url": "jdbc:x;password=hunter2"},
    )
    assert "hunter2" not in record.path.read_text()
    record.add_not_applied("spark.ssl.keyPassword", asked="hunter2", effective=None, why="too late")
    record.inputs.append({"paths": ["s3a://a:hunter2@b/p"]})
    record.output = {"path": "s3a://a:hunter2@b/p"}
    error = RuntimeError("cannot reach jdbc:x://h;password=hunter2")
    error.__cause__ = ValueError("token=hunter2")
    text = record.finish(error).read_text()
    assert "hunter2" not in text
    assert "s3a://a:*****@b/p" in text


def test_the_file_is_private_and_strict_json(tmp_path: Path) -> None:
    record = RunRecord.start("a job/é", runs_dir=tmp_path, arguments=["--input", "caf\udce9/é"])
    record.counters["mean"] = float("nan")
    path = record.finish()
    assert path.name == f"{record.run_id}-a_job_.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = json.loads(path.read_bytes(), parse_constant=pytest.fail)
    assert content["arguments"] == ["--input", "caf\udce9/é"]
    assert content["counters"] == {"mean": "NaN"}


def test_a_failed_write_leaves_the_old_record_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = RunRecord.start("topn", runs_dir=tmp_path)
    before = record.path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("common.core.files.os.fsync", full)
    with pytest.raises(UsageError, match="No space left on device"):
        record.finish()
    assert record.path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [record.path]


def test_a_folder_that_cannot_be_written_names_the_flag(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError) as caught:
        RunRecord.start("topn", runs_dir=tmp_path / "file" / "runs")
    assert caught.value.name == "--runs-dir"
    assert "SALTPAN_RUNS_DIR" in str(caught.value)
    assert isinstance(caught.value.__cause__, NotADirectoryError)


def test_saving_while_running_keeps_what_is_known(tmp_path: Path) -> None:
    record = RunRecord.start("topn", runs_dir=tmp_path)
    record.application_id = "app-1"
    content = load_record(record.save())
    assert (content["application_id"], content["outcome"]["status"]) == ("app-1", "running")


def test_the_runs_folder_is_named_or_the_users_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SALTPAN_RUNS_DIR", str(tmp_path / "r"))
    assert default_runs_dir() == tmp_path / "r"
    assert RunRecord.start("topn").path.parent == tmp_path / "r"
    monkeypatch.setenv("SALTPAN_RUNS_DIR", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert default_runs_dir().name == "runs"
    assert tmp_path in default_runs_dir().parents
    assert default_runs_dir({"SALTPAN_RUNS_DIR": "~/x"}) == tmp_path / "x"


@pytest.mark.parametrize(
    ("content", "got"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff", "no JSON"),
        (b"[]", "other JSON"),
        (b"{}", "other JSON"),
        (b'{"schema_version": 2}', "version 2"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, content: bytes, got: str) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(FileCorruptError) as caught:
        load_record(path)
    assert caught.value.got.startswith(got)
    assert caught.value.expected == "a run record of schema version 1"


def test_an_absent_or_unreadable_record(tmp_path: Path) -> None:
    with pytest.raises(PathAbsentError):
        load_record(tmp_path / "none.json")
    with pytest.raises(FileUnreadableError):
        load_record(tmp_path)


def test_an_error_without_text_is_recorded_all_the_same(tmp_path: Path) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise AssertionError("the JVM is gone")

    record = RunRecord.start("job", runs_dir=tmp_path)
    outcome = load_record(record.finish(MuteError()))["outcome"]
    assert (outcome["status"], outcome["error"]["text"]) == ("failed", "no text: AssertionError")
