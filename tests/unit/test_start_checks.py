"""Each start-up check: what is wrong, in its own sentence. Programs are scripts, machines are pretended."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.core.errors import EngineError, ExitCode, InstallationError, SuiteError
from common.engine import scratch, worker_python
from common.engine.checked import Checked, checked
from common.engine.installation import find_packages, prepare_gateway, prepare_installation
from common.engine.network import check_host_name, check_ports
from common.engine.programs import ask, said_by
from common.engine.scratch import check_open_files, check_space, check_unpacking, temporary_folder
from common.engine.shadowing import check_beside_job, check_current_folder, find_shadows
from common.engine.start_checks import start_checks
from common.engine.worker_python import (
    WorkerPython,
    check_worker_imports,
    check_worker_packages,
    find_worker_python,
)

OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"
MEBIBYTE = 1024 * 1024


def program(path: Path, *lines: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
    path.chmod(0o755)
    return str(path)


def python_that_says(folder: Path, *lines: str) -> str:
    return program(folder / "python", *(f"echo '{line}'" for line in lines))


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


# Programs that are asked


def test_what_a_program_prints(tmp_path: Path) -> None:
    both = program(tmp_path / "both", "echo out; echo err >&2")
    assert said_by([both]) == "out\nerr\n"
    assert said_by([program(tmp_path / "fails", "echo out; exit 3")]) == ""
    assert said_by([str(tmp_path / "absent")]) == ""
    assert said_by([program(tmp_path / "slow", "exec sleep 9")], timeout_seconds=0.05) == ""
    assert said_by(["cat"]) == ""  # no input to wait for


def test_a_program_that_fails_has_answered_too(tmp_path: Path) -> None:
    ran = ask([program(tmp_path / "fails", "echo out; printf '\\377' >&2; exit 3")])
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "out\n", "\ufffd")


# The workers' Python


def test_the_drivers_own_python_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_python, "said_by", lambda command: pytest.fail("a process was started"))
    for environ in ({}, {"PYSPARK_PYTHON": sys.executable}):
        assert find_worker_python(environ) == WorkerPython(sys.executable, OURS, is_ours=True)


def test_pythons_of_two_environments_are_two_even_when_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = program(tmp_path / "base" / "python", f"echo {OURS}; echo pandas -; echo pyarrow -")
    for name in ("driver", "other"):
        touched(tmp_path, f"{name}/pyvenv.cfg")
        (tmp_path / name / "bin").mkdir()
        (tmp_path / name / "bin" / "python").symlink_to(base)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "driver" / "bin" / "python"))
    (tmp_path / "driver" / "bin" / "python3").symlink_to("python")
    assert find_worker_python({"PYSPARK_PYTHON": str(tmp_path / "driver" / "bin" / "python3")}).is_ours
    for other in (str(tmp_path / "other" / "bin" / "python"), base):
        found = find_worker_python({"PYSPARK_PYTHON": other})
        assert found == WorkerPython(other, OURS, packages={"pandas": "-", "pyarrow": "-"})


@pytest.mark.parametrize(
    ("pandas", "pyarrow", "got", "install"),
    [
        ("2.2.0", "15.0.0", None, None),
        ("2.3.3+local", "26.0.1.dev5", None, None),
        ("?", "?", None, None),
        ("2.3.3", "-", "no pyarrow", "'pyarrow>=15.0.0'"),
        ("-", "-", "no pandas; no pyarrow", "'pandas>=2.2.0,<3' 'pyarrow>=15.0.0'"),
        ("2.1.4", "26.0.1", "pandas 2.1.4", "'pandas>=2.2.0,<3'"),
        ("2.3.3", "9.0.0", "pyarrow 9.0.0", "'pyarrow>=15.0.0'"),
        ("3.0.0", "26.0.1", "pandas 3.0.0", "'pandas>=2.2.0,<3'"),
    ],
)
def test_packages_of_the_workers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pandas: str,
    pyarrow: str,
    got: str | None,
    install: str | None,
) -> None:
    monkeypatch.setattr(worker_python, "_least_versions", lambda: {"pandas": "2.2.0", "pyarrow": "15.0.0"})
    there = python_that_says(tmp_path, OURS, f"pandas {pandas}", f"pyarrow {pyarrow}", "numpy 1.0")
    found = find_worker_python({"PYSPARK_PYTHON": there})
    if got is None:
        assert check_worker_packages(found).state == "ok"
        return
    with pytest.raises(InstallationError) as caught:
        check_worker_packages(found)
    assert (caught.value.name, caught.value.got) == (there, got)
    assert caught.value.expected == "pandas from 2.2.0 and below 3 and pyarrow from 15.0.0"
    assert caught.value.hint == (
        f"run `{there} -m pip install {install}`, or set PYSPARK_PYTHON to a Python that has them"
    )


def test_the_versions_are_those_that_this_pyspark_declares() -> None:
    declared = importlib.metadata.requires("pyspark") or []
    least = {
        name: version
        for name, _, version in (line.partition(";")[0].strip().partition(">=") for line in declared)
        if name in ("pandas", "pyarrow")
    }
    assert set(least) == {"pandas", "pyarrow"}
    assert worker_python._least_versions() == least


def test_an_import_that_fails_is_told_with_its_reason(tmp_path: Path) -> None:
    there = python_that_says(
        tmp_path, OURS, "pandas 2.3.3", "pyarrow ! ImportError: libarrow.so: no such file"
    )
    with pytest.raises(InstallationError) as caught:
        check_worker_imports(WorkerPython(there, OURS))
    assert caught.value.got == "pyarrow that cannot be imported (ImportError: libarrow.so: no such file)"
    crashing = WorkerPython(program(tmp_path / "crashing", "kill -ILL $$"), OURS)
    with pytest.raises(InstallationError, match=r"pandas that cannot be imported \(no answer\); pyarrow"):
        check_worker_imports(crashing)


def test_what_both_questions_ask_is_python_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "quick.py").write_text("__version__ = '1.5'\n")
    (tmp_path / "broken.py").write_text("import quick, absent_dependency\n")
    names = ["quick", "broken", "nowhere"]
    code = worker_python._LOOK + "\nprint()\n" + worker_python._IMPORT
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    looked, imported = said_by([sys.executable, "-S", "-c", code, *names]).split("\n\n")
    assert looked.splitlines() == [OURS, "quick ?", "broken ?", "nowhere -"]
    _, *answers = imported.splitlines()
    assert answers[0] == "quick 1.5"
    assert answers[1] == "broken ! ModuleNotFoundError: No module named 'absent_dependency'"
    assert answers[2] == "nowhere -"


# Files that hide a library


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["random.py"], ["random.py (hides Python's own random)"]),
        (["json/__init__.py", "json.py"], ["json/ (hides Python's own json)"]),
        (["numpy.py", "pyarrow/__init__.py"], ["numpy.py (hides numpy)", "pyarrow/ (hides pyarrow)"]),
        (["pyspark.py", "py4j.pyc"], ["py4j.pyc (hides py4j)", "pyspark.py (hides pyspark)"]),
        (["socket.abi3.so"], ["socket.abi3.so (hides Python's own socket)"]),
        (["wave.py", "rich.py"], ["rich.py (hides rich)", "wave.py (hides Python's own wave)"]),
        # What hides nothing: built into Python, frozen, no module, a folder without __init__.py, other names.
        (["sys.py", "os.py", "time.py"], []),
        (["random.txt", "random.py.bak", "random", "json/data.json", "randoms.py", "Random.py"], []),
        (["common/__init__.py", "jobs.py", "test.py"], []),
    ],
)
def test_names_that_hide_a_library(tmp_path: Path, names: list[str], expected: list[str]) -> None:
    assert [str(shadow) for shadow in find_shadows(touched(tmp_path, *names))] == expected


def test_a_library_does_not_hide_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched(tmp_path, "pandas/__init__.py", "random.py")
    monkeypatch.setattr(sys, "path", [str(tmp_path), os.path.dirname(os.__file__)])  # noqa: PTH120
    assert [shadow.module for shadow in find_shadows(tmp_path)] == ["random"]
    monkeypatch.setattr(sys, "path", sys.path[1:])
    assert find_shadows(Path(os.__file__).parent) == []


def test_a_current_folder_that_breaks_workers(tmp_path: Path) -> None:
    folder = touched(tmp_path, "random.py", "csv.py", "wave.py")
    with pytest.raises(InstallationError) as caught:
        check_current_folder(folder, {"PYTHONSAFEPATH": ""})
    assert str(caught.value) == (
        f"[INSTALLATION_UNSUITABLE] current folder `{folder}`: expected no file that Spark's Python workers "
        "import in the place of a library, got csv.py (hides Python's own csv), random.py (hides Python's "
        "own random). Hint: rename it, start from another folder, or export PYTHONSAFEPATH=1, with which "
        "workers leave it out."
    )
    assert check_current_folder(folder, {"PYTHONSAFEPATH": "1"}).state == "ok"


def test_a_name_that_only_the_users_functions_may_import_is_a_warning(tmp_path: Path) -> None:
    found = check_current_folder(touched(tmp_path, "statistics.py"), {})
    assert found.state == "warning"
    assert "statistics.py (hides Python's own statistics)" in found.sentence
    assert check_current_folder(touched(tmp_path / "clean", "statistic.py"), {}).state == "ok"


def test_many_files_are_counted(tmp_path: Path) -> None:
    touched(tmp_path, *(f"{name}.py" for name in ("ast", "bz2", "copy", "csv", "dis", "enum", "re")))
    with pytest.raises(InstallationError, match=r"dis\.py \(hides Python's own dis\) and 2 more"):
        check_current_folder(tmp_path, {})


def test_a_current_folder_that_is_gone() -> None:
    with pytest.raises(InstallationError, match="got one that has been removed"):
        check_current_folder(None, {})


def test_beside_a_job(tmp_path: Path) -> None:
    check_beside_job(touched(tmp_path / "job", "my_job.py", "statistics.py", "common/__init__.py"))
    check_beside_job(tmp_path / "nowhere")
    for name in ("random.py", "pydantic.py"):
        with pytest.raises(InstallationError, match=rf"folder of the job .* got {name} \(hides .*rename"):
            check_beside_job(touched(tmp_path / name, f"{name}"))


def test_a_file_beside_the_running_script_is_found_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched(tmp_path, "job.py", "queue.py")
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=str(tmp_path / "job.py")))  # type: ignore[misc]
    find_packages({})  # imports do not look into its folder
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InstallationError, match=r"queue\.py \(hides Python's own queue\)"):
        find_packages({})
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace())  # type: ignore[misc]  # a notebook
    find_packages({})


# The network


def resolver(**known: str) -> Callable[..., list[tuple[object, ...]]]:
    """A name service that knows these names, and numbers; as getaddrinfo answers."""

    def getaddrinfo(name: str, port: object, *, type: int = 0) -> list[tuple[object, ...]]:  # noqa: A002
        addresses = known.get(name.replace("-", "_"), name if name[0].isdigit() else "")
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET6 if ":" in each else socket.AF_INET, type, 6, "", (each, 0))
            for each in addresses.split()
        ]

    return getaddrinfo


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def pretend(name: str, **known: str) -> None:
        monkeypatch.setattr(socket, "gethostname", lambda: name)
        monkeypatch.setattr(socket, "getaddrinfo", resolver(**known))

    return pretend


def test_a_host_name_without_an_address(host: Callable[..., None]) -> None:
    host("box-7", box_8="10.0.0.8")
    with pytest.raises(EngineError) as caught:
        check_host_name({})
    assert str(caught.value) == (
        "[ENGINE_FAILED] host name `box-7`: expected one with an address, got none. Hint: export SPARK_LOCAL_"
        "IP=127.0.0.1 (for a run on this machine), or add the line `127.0.0.1 box-7` to /etc/hosts."
    )
    assert check_host_name({"SPARK_LOCAL_HOSTNAME": "localhost"}).state == "ok"
    assert check_host_name({"SPARK_LOCAL_IP": "127.0.0.1"}).sentence == "127.0.0.1 from SPARK_LOCAL_IP"
    assert check_host_name({"SPARK_LOCAL_IP": ""}).state == "ok"  # Java takes no name for loopback
    assert check_host_name({"SPARK_LOCAL_IP": "box-8"}).sentence == "box-8 is 10.0.0.8 from SPARK_LOCAL_IP"


def test_a_local_ip_without_an_address(host: Callable[..., None]) -> None:
    host("box", box="10.0.0.8")
    with pytest.raises(EngineError, match=r"variable `SPARK_LOCAL_IP`: .* got `wrong`\. Hint: set it"):
        check_host_name({"SPARK_LOCAL_IP": "wrong"})


def test_a_host_name_with_addresses_of_both_kinds(host: Callable[..., None]) -> None:
    host("box", box="::1 10.0.0.8 10.0.0.9")
    assert check_host_name({}) == Checked("host name", "ok", "box is 10.0.0.8")


def test_a_host_name_that_is_no_name_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "a" * 70)  # a label has 63 characters at most
    with pytest.raises(EngineError, match="host name `aaaa"):
        check_host_name({})


# 192.0.2.0/24 is for documentation (RFC 5737): no machine has such an address.
@pytest.mark.parametrize(
    ("settings", "environ", "name"),
    [
        ({}, {}, "box"),
        ({}, {"SPARK_LOCAL_IP": "192.0.2.9"}, "192.0.2.9"),
        ({}, {"SPARK_LOCAL_HOSTNAME": "nowhere"}, "nowhere"),
        ({"spark.driver.host": "192.0.2.9"}, {"SPARK_LOCAL_IP": "127.0.0.1"}, "192.0.2.9"),
        ({"spark.driver.bindAddress": "nowhere", "spark.driver.host": "127.0.0.1"}, {}, "nowhere"),
        ({"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "192.0.2.9"}, {}, None),
        ({}, {"SPARK_LOCAL_IP": "127.0.0.1"}, None),
        ({}, {"SPARK_LOCAL_IP": "absent"}, None),  # the host name's check says it
    ],
)
def test_the_address_where_the_driver_listens(
    host: Callable[..., None], settings: dict[str, str], environ: dict[str, str], name: str | None
) -> None:
    host("box", box="192.0.2.1")
    if name is None:
        assert check_ports(environ, settings) == Checked("ports", "ok", "can be opened on 127.0.0.1")
        return
    with pytest.raises(EngineError, match=f"address of the driver `{name}`: expected") as caught:
        check_ports(environ, settings)
    expected = "192.0.2.1, cannot assign" if name == "box" else "cannot assign"
    assert caught.value.got.startswith("a name without an address" if name == "nowhere" else expected)


def test_no_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(EngineError, match=r"port `127\.0\.0\.1`.* got operation not permitted\."):
        check_ports({}, {})


# Disks and limits


def free(monkeypatch: pytest.MonkeyPatch, **mebibytes: int) -> None:
    """Pretend so much room in the folders of these names."""

    def disk_usage(path: Path) -> SimpleNamespace:
        return SimpleNamespace(free=mebibytes[Path(path).name] * MEBIBYTE)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)


def folders(tmp_path: Path, *names: str) -> dict[str, str]:
    for name in names:
        (tmp_path / name).mkdir()
    return {"SPARK_LOCAL_DIRS": ",".join(str(tmp_path / name) for name in names)}


@pytest.mark.parametrize(
    ("mebibytes", "state", "text"),
    [
        (2048, "ok", "2 GiB free for shuffles and spills in"),
        (2047, "warning", "2.0 GiB free for shuffles and spills in"),
        (100, "warning", "below 2 GiB large inputs may not fit"),
        (15, "error", "expected 16 MiB free or more, got 15 MiB in"),
        (0, "error", "got 0 B in"),
    ],
)
def test_room_for_spills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mebibytes: int, state: str, text: str
) -> None:
    environ = folders(tmp_path, "only")
    free(monkeypatch, only=mebibytes)
    found = checked("disk space", lambda: check_space(environ, {}))
    assert found.state == state
    assert text in found.sentence
    assert (found.hint or "").startswith("" if state == "ok" else "set SPARK_LOCAL_DIRS to a folder")


def test_one_full_disk_of_two_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = folders(tmp_path, "full", "large")
    free(monkeypatch, full=0, large=90_000)
    found = check_space(environ, {})
    assert (found.state, found.sentence.partition(" free")[0]) == ("warning", "0 B")


def test_folders_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = folders(tmp_path, "mine")
    touched(tmp_path, "file")
    free(monkeypatch, mine=90_000)
    both = {"SPARK_LOCAL_DIRS": f"{tmp_path}/file/spill, {environ['SPARK_LOCAL_DIRS']}"}
    found = check_space(both, {})
    assert found.state == "warning"
    assert found.sentence.endswith(f"left out: {tmp_path}/file is no folder")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(EngineError, match=rf"_DIRS.* got {tmp_path}/mine may not be written\."):
        check_space(environ, {})


def test_a_folder_that_spark_would_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = folders(tmp_path, "there")
    free(monkeypatch, there=90_000)
    environ["SPARK_LOCAL_DIRS"] += "/a/b"
    assert check_space(environ, {}).state == "ok"


@pytest.mark.parametrize(
    ("environ", "settings", "origin", "place"),
    [
        ({}, {}, "java.io.tmpdir", "/tmp"),
        ({"TMPDIR": "/var/tmp"}, {}, "java.io.tmpdir", "/tmp"),
        ({}, {"spark.local.dir": "/a,/b"}, "spark.local.dir", "/a /b"),
        ({"SPARK_LOCAL_DIRS": "/c"}, {"spark.local.dir": "/a"}, "SPARK_LOCAL_DIRS", "/c"),
        ({"LOCAL_DIRS": "/y", "CONTAINER_ID": "1", "SPARK_LOCAL_DIRS": "/c"}, {}, "LOCAL_DIRS", "/y"),
        ({"LOCAL_DIRS": "/y"}, {}, "java.io.tmpdir", "/tmp"),
        ({"JAVA_TOOL_OPTIONS": "-Xmx1g -Djava.io.tmpdir=/d"}, {}, "java.io.tmpdir", "/d"),
    ],
)
def test_the_folders_of_spills(
    environ: dict[str, str], settings: dict[str, str], origin: str, place: str
) -> None:
    expected = (origin, [Path(each) for each in place.split()])
    if sys.platform == "darwin" and place == "/tmp":
        pytest.skip("the folder of the system has another name there")
    assert scratch.scratch_folders(environ, settings) == expected


def test_the_temporary_folder_of_java() -> None:
    key = "spark.driver.extraJavaOptions"
    tool = {"JAVA_TOOL_OPTIONS": "-Djava.io.tmpdir=/tool"}
    assert temporary_folder(tool, {key: "-Djava.io.tmpdir='/a b' -Dx=1"}) == Path("/a b")
    assert temporary_folder(tool, {key: "-Djava.io.tmpdir=/a -Djava.io.tmpdir=/b"}) == Path("/b")
    assert temporary_folder({**tool, "SPARK_SUBMIT_OPTS": "-Djava.io.tmpdir=/s"}, {key: "-Xss4m"}) == Path(
        "/s"
    )


def test_native_code_needs_a_folder_where_it_may_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={tmp_path}"}
    flags = {"f_flag": 0}
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**flags))
    monkeypatch.setattr(os, "ST_NOEXEC", 8, raising=False)
    assert check_unpacking(environ, {}).state == "ok"
    flags["f_flag"] = 8 | 2
    found = check_unpacking(environ, {})
    assert found.state == "warning"
    assert found.sentence.endswith(f"{tmp_path} is mounted noexec")
    absent = check_unpacking({"JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={tmp_path}/absent"}, {})
    assert (absent.state, absent.sentence.endswith("/absent is no folder")) == ("warning", True)


@pytest.mark.parametrize(
    ("hard", "state"),
    [(resource.RLIM_INFINITY, "ok"), (4096, "ok"), (4095, "warning"), (512, "warning"), (511, "error")],
)
def test_open_files_by_the_hard_limit(monkeypatch: pytest.MonkeyPatch, hard: int, state: str) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, hard))
    found = checked("open files", check_open_files)
    assert found.state == state
    assert (found.hint is None) == (state == "ok")


# All of them


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine on which all is well, whose Java and Python are scripts."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    java = program(tmp_path / "java" / "bin" / "java", "exit 9")
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.15"\n')
    python = python_that_says(tmp_path / "py", OURS, "pandas 2.3.3", "pyarrow 26.0.1")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (9999, 9999))
    free(monkeypatch, spill=90_000)
    return {
        **folders(tmp_path, "spill"),
        "JAVA_HOME": str(Path(java).parents[1]),
        "PYSPARK_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PATH": os.defpath,
    }


def states(environ: dict[str, str], site: str = "local", **settings: str) -> dict[str, str]:
    found = start_checks(environ, folder=Path.cwd(), settings=settings, site=site)
    return {each.name: each.state for each in found}


def test_all_is_well(machine: dict[str, str]) -> None:
    assert list(states(machine).items()) == [
        ("Java", "ok"),
        ("Spark", "ok"),
        ("worker Python", "ok"),
        ("current folder", "ok"),
        ("host name", "ok"),
        ("ports", "ok"),
        ("disk space", "ok"),
        ("native code", "ok"),
        ("open files", "ok"),
    ]
    assert "current folder" not in states(machine, site="standalone")


def test_one_error_does_not_stop_the_others(machine: dict[str, str], tmp_path: Path) -> None:
    touched(Path.cwd(), "random.py")
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="11.0.20"\n')
    wrong = {**machine, "SPARK_HOME": str(tmp_path / "nowhere"), "SPARK_LOCAL_HOSTNAME": "192.0.2.9"}
    found = states(wrong)
    assert [name for name, state in found.items() if state == "error"] == [
        "Java",
        "Spark",
        "current folder",
        "ports",
    ]


def test_the_workers_python_may_be_a_setting(machine: dict[str, str], tmp_path: Path) -> None:
    other = python_that_says(tmp_path / "old", "3.9")
    named = {"spark.pyspark.python": other}
    without = {name: value for name, value in machine.items() if name != "PYSPARK_PYTHON"}
    assert states(without, **named)["worker Python"] == "error"
    assert states(machine, **named)["worker Python"] == "ok"  # the variable wins in PySpark too
    assert states({**machine, "PYSPARK_PYTHON": "./theirs/python"}, "yarn")["worker Python"] == "ok"


def test_a_foreign_common_is_a_warning(machine: dict[str, str]) -> None:
    touched(Path.cwd(), "common/__init__.py")
    assert states(machine)["current folder"] == "warning"
    assert states({**machine, "PYTHONSAFEPATH": "1"})["current folder"] == "ok"


@pytest.mark.parametrize(
    ("break_it", "match"),
    [
        (lambda environ: touched(Path.cwd(), "random.py"), "current folder"),
        (lambda environ: environ.update(SPARK_LOCAL_IP="no such name"), "SPARK_LOCAL_IP"),
        (lambda environ: environ.update(SPARK_LOCAL_HOSTNAME="192.0.2.9"), "address of the driver"),
        (lambda environ: environ.update(SPARK_LOCAL_DIRS="/dev/null/x"), "/dev/null is no folder"),
        (lambda environ: environ.update(JAVA_HOME="/nowhere"), "JAVA_HOME"),
    ],
)
def test_a_run_stops_before_its_gateway(
    machine: dict[str, str],
    break_it: Callable[[dict[str, str]], None],
    match: str,
) -> None:
    prepare_installation(machine, settings={})
    break_it(machine)
    with pytest.raises(SuiteError, match=match) as caught:
        prepare_installation(machine, settings={})
    assert caught.value.exit_code == ExitCode.ENGINE


def test_a_run_stops_when_workers_lack_a_package(machine: dict[str, str], tmp_path: Path) -> None:
    machine["PYSPARK_PYTHON"] = python_that_says(tmp_path / "bare", OURS, "pandas 2.3.3", "pyarrow -")
    with pytest.raises(InstallationError, match="no pyarrow"):
        prepare_installation(machine)
    prepare_gateway(machine)


def test_workers_elsewhere_do_not_start_in_this_folder(machine: dict[str, str]) -> None:
    touched(Path.cwd(), "random.py")
    prepare_installation(machine, workers_here=False)


def test_a_run_is_told_of_little_room(
    machine: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    free(monkeypatch, spill=100)
    prepare_installation(machine, settings={})
    (said,) = [each.getMessage() for each in caplog.records]
    assert said.startswith("disk space: 100 MiB free for shuffles and spills in ")
    prepare_installation(machine)  # where it spills is not known
    assert len(caplog.records) == 1
