"""`saltpan doctor start`: what it prints, and its exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from common import cli
from common.core.errors import ExitCode
from common.engine.checked import Checked
from common.runs import doctor

FINE = Checked("Java", "ok", "Java 17.0.15 in /opt/java")
LOW = Checked("disk space", "warning", "100 MiB free", "free some")
WRONG = Checked(
    "current folder",
    "error",
    "current folder `/srv/data/my job`: expected no file that Spark's Python workers import in the place of "
    "a library, got random.py (hides Python's own random)",
    "rename it, start from another folder, or export PYTHONSAFEPATH=1, with which workers leave it out",
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the checks were asked for; they answer with what is under "found"."""
    calls: dict[str, Any] = {"found": [FINE]}

    def checks(environ: Mapping[str, str], **given: Any) -> list[Checked]:
        calls.update(given)
        return list(calls["found"])

    monkeypatch.setattr(doctor, "start_checks", checks)
    monkeypatch.delenv("SALTPAN_CONF", raising=False)
    return calls


@pytest.mark.parametrize(
    ("found", "code", "last"),
    [
        ([FINE], 0, "Spark can start here"),
        ([FINE, LOW], 0, "Spark can start here, with 1 warning"),
        ([LOW, LOW], 0, "Spark can start here, with 2 warnings"),
        ([FINE, LOW, WRONG], 4, "1 error: Spark would not start, or not answer rightly"),
        ([WRONG, WRONG], 4, "2 errors: Spark would not start, or not answer rightly"),
    ],
)
def test_the_exit_code_is_that_of_the_worst(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str], found: list[Checked], code: int, last: str
) -> None:
    asked["found"] = found
    assert cli.main(["doctor", "start"]) == code
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_a_person_reads_it_in_100_columns(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    asked["found"] = [FINE, WRONG]
    cli.main(["doctor", "start"])
    assert capsys.readouterr().out == (
        "check           state  what was found, and what to do\n"
        "Java            ok     Java 17.0.15 in /opt/java\n"
        "current folder  ERROR  current folder `/srv/data/my job`: expected no file that Spark's Python\n"
        "                       workers import in the place of a library, got random.py (hides Python's own\n"
        "                       random)\n"
        "                       -> rename it, start from another folder, or export PYTHONSAFEPATH=1, with\n"
        "                          which workers leave it out\n"
        "\n"
        "1 error: Spark would not start, or not answer rightly\n"
    )


def test_a_path_is_not_cut(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    path = "/" + "very-long-name/" * 9
    asked["found"] = [Checked("Java", "ok", f"Java 17 in {path}")]
    cli.main(["doctor", "start"])
    assert path in capsys.readouterr().out


def test_as_json(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    asked["found"] = [FINE, LOW]
    assert cli.main(["doctor", "start", "--format", "json"]) == ExitCode.OK
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"check": "Java", "state": "ok", "found": "Java 17.0.15 in /opt/java", "hint": None},
        {"check": "disk space", "state": "warning", "found": "100 MiB free", "hint": "free some"},
    ]


def test_the_profile_says_where_spark_listens_and_where_workers_are(asked: dict[str, Any]) -> None:
    cli.main(["doctor", "start"])
    assert asked["site"] == "local"
    assert asked["settings"]["spark.driver.bindAddress"] == "127.0.0.1"
    assert asked["folder"] == Path.cwd()
    cli.main(["doctor", "start", "--profile", "yarn"])
    assert asked["site"] == "yarn"


def test_what_rapids_lacks_is_a_warning(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no nvidia-smi
    assert cli.main(["doctor", "start", "--profile", "local+rapids"]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("RAPIDS  warning  RAPIDS is off, the CPU gives the same answer: driver: ")
    assert "no nvidia-smi on PATH" in " ".join(lines)


def test_a_folder_that_is_gone(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    cli.main(["doctor", "start"])
    assert asked["folder"] is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["start", "--profile", "connect"], "expected a site whose Spark starts here"),
        (["start", "--profile", "locl"], "did you mean `local`"),
        (["strt"], "expected saltpan doctor start"),
    ],
)
def test_what_cannot_be_asked(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    assert cli.main(["doctor", *words]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert (out, sentence in err) == ("", True)


def test_a_library_is_hidden_beside_a_job_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("my_job.py", "random.py"):
        (tmp_path / name).write_text("raise AssertionError('it was run')\n")
    assert cli.main(["run", str(tmp_path / "my_job.py")]) == ExitCode.ENGINE
    assert "random.py (hides Python's own random)" in capsys.readouterr().err
