"""Java, SPARK_HOME and the workers' Python, with fake installations in a folder."""

from __future__ import annotations

import importlib.machinery
import os
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from common.core.errors import ExitCode, InstallationError, JavaError
from common.engine import java
from common.engine.java import check_java, check_spark_home, parse_version
from common.engine.java_packages import command_for
from common.engine.worker_python import check_worker_python

OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def fake_java(home: Path, version: str, *, release: bool) -> Path:
    program(home / "bin" / "java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\nOS_NAME="Linux"\n')
    return home


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('java version "1.8.0_402"', (8, "1.8.0_402")),
        ('openjdk version "11" 2018-09-25', (11, "11")),
        ('openjdk version "17.0.15" 2025-04-15', (17, "17.0.15")),
        ('openjdk version "21-ea" 2023-09-19', (21, "21-ea")),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25.0.1" 2025-10-21', (25, "25.0.1")),
        ('JAVA_VERSION="17.0.15"\n', (17, "17.0.15")),
        ("command not found", None),
    ],
)
def test_versions(text: str, expected: tuple[int, str] | None) -> None:
    assert parse_version(text) == expected


@pytest.mark.parametrize("release", [True, False])
def test_java_home_with_spaces_and_both_ways_to_tell(tmp_path: Path, release: bool) -> None:
    home = fake_java(tmp_path / "my java 17", "17.0.15", release=release)
    found = check_java({"JAVA_HOME": str(home), "PATH": ""})
    assert (found.version, found.text, found.home) == (17, "17.0.15", str(home))


def test_java_on_the_path_behind_a_link(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jvm" / "21", "21.0.2", release=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    found = check_java({"PATH": str(tmp_path / "bin")})
    assert (found.version, found.home) == (21, str(home))


def test_the_release_file_spares_the_process(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "17.0.1", release=True)
    program(home / "bin" / "java", f"touch {tmp_path}/started; exit 1")
    assert check_java({"JAVA_HOME": str(home)}).version == 17
    assert not (tmp_path / "started").exists()


def test_an_old_java_is_named_with_both_versions(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "11.0.20", release=True)
    with pytest.raises(JavaError) as caught:
        check_java({"JAVA_HOME": str(home), "PATH": ""})
    assert "expected Java 17 or newer, got Java 11.0.20" in str(caught.value)
    assert "install" in (caught.value.hint or "")
    assert caught.value.exit_code == ExitCode.ENGINE


@pytest.mark.parametrize("what", ["old", "absent", "no program", "not executable", "fails"])
def test_a_wrong_java_home_beside_a_right_path_is_to_be_unset(tmp_path: Path, what: str) -> None:
    good = fake_java(tmp_path / "good", "17.0.15", release=True)
    home = tmp_path / "bad"
    if what == "old":
        fake_java(home, "1.8.0_402", release=True)
    elif what == "no program":
        home.mkdir()
    elif what == "not executable":
        fake_java(home, "17.0.1", release=True)
        (home / "bin" / "java").chmod(0o644)
    elif what == "fails":
        program(home / "bin" / "java", "exit 1")
    with pytest.raises(JavaError, match="Java from `JAVA_HOME`") as caught:
        check_java({"JAVA_HOME": str(home), "PATH": str(good / "bin")})
    assert caught.value.hint == "unset JAVA_HOME: the java on PATH is 17.0.15"


def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(JavaError, match="Java from `PATH`: expected Java 17 or newer, got no java on it"):
        check_java({"PATH": str(tmp_path)})
    with pytest.raises(JavaError, match="Java from `PATH`"):
        check_java({"JAVA_HOME": "", "PATH": str(tmp_path)})


@pytest.mark.parametrize(
    ("os_release", "command"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "apt-get install openjdk-17-jre-headless"),
        ('ID=debian\nVERSION_ID="13"\n', "apt-get install openjdk-21-jre-headless"),
        ('NAME="Ubuntu"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"', "openjdk-17-jre-headless"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="22"', "apt-get install openjdk-17-jre-headless"),
        ("ID=fedora\nVERSION_ID=43\n", "dnf install java-21-openjdk-headless"),
        (
            'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"',
            "dnf install java-17-openjdk-headless",
        ),
        ('ID="centos"\nVERSION_ID="7"', "yum install java-17-openjdk-headless"),
        ('ID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"', "dnf install java-17-amazon-corretto-headless"),
        ("ID=alpine\nVERSION_ID=3.20.1", "apk add openjdk17-jre-headless"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.6"', "zypper install java-17-openjdk"),
        ("ID=arch\n", "pacman -S jre17-openjdk-headless"),
        ("ID=plan9\n", "adoptium"),
        ("", "adoptium"),
    ],
)
def test_the_command_that_installs_java(os_release: str, command: str) -> None:
    assert command in command_for(os_release)


def spark_home(home: Path, version: str, *, release: bool) -> str:
    (home / "jars").mkdir(parents=True)
    (home / "jars" / f"spark-core_2.13-{version}.jar").touch()
    if release:
        (home / "RELEASE").write_text(f"Spark {version} built for Hadoop 3.4.2\nBuild flags: -Pyarn\n")
    return str(home)


def pretend_pyspark(monkeypatch: pytest.MonkeyPatch, folder: Path, version: str | None) -> None:
    spec = None
    if version:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "version.py").write_text(f'__version__: str = "{version}"\n')
        origin = str(folder / "__init__.py")
        loader = importlib.machinery.SourceFileLoader("pyspark", origin)
        spec = importlib.machinery.ModuleSpec("pyspark", loader, origin=origin)
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: spec)  # type: ignore[attr-defined]


@pytest.mark.parametrize("release", [True, False])
def test_spark_home_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: bool
) -> None:
    pretend_pyspark(monkeypatch, tmp_path / "pip", "4.1.3")
    home = spark_home(tmp_path / "spark", "3.5.1", release=release)
    with pytest.raises(InstallationError) as caught:
        check_spark_home({"SPARK_HOME": home})
    assert "Spark 4.1.3" in caught.value.expected
    assert "Spark 3.5.1" in caught.value.got
    assert caught.value.hint == "unset SPARK_HOME, or run `pip install 'pyspark==3.5.*'`"


def test_spark_home_of_another_patch_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_pyspark(monkeypatch, tmp_path / "pip", "4.1.3")
    home = spark_home(tmp_path / "spark", "4.1.1", release=True)
    assert check_spark_home({"SPARK_HOME": home}) == "4.1.3"
    assert check_spark_home({}) == "4.1.3"
    assert check_spark_home({"SPARK_HOME": ""}) == "4.1.3"


def test_a_pyspark_inside_a_zip_as_spark_submit_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "pyspark.zip", "w") as archive:
        archive.writestr("pyspark/__init__.py", "")
        archive.writestr("pyspark/version.py", '__version__ = "4.1.1"\n')
    spec = zipimport.zipimporter(str(tmp_path / "pyspark.zip")).find_spec("pyspark")
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: spec)  # type: ignore[attr-defined]
    assert check_spark_home({}) == "4.1.1"


def test_no_spark_an_old_one_and_a_spark_home_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_pyspark(monkeypatch, tmp_path / "pip", "4.1.3")
    with pytest.raises(InstallationError, match="`SPARK_HOME`: expected a Spark folder"):
        check_spark_home({"SPARK_HOME": str(tmp_path / "nowhere")})
    pretend_pyspark(monkeypatch, tmp_path / "old", "3.5.1")
    with pytest.raises(InstallationError, match=r"expected 4\.1 or newer, got 3\.5\.1"):
        check_spark_home({})
    pretend_pyspark(monkeypatch, tmp_path, None)
    with pytest.raises(InstallationError, match="expected a pyspark that can be imported, got none"):
        check_spark_home({})


def test_spark_from_spark_home_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_pyspark(monkeypatch, tmp_path, None)
    home = spark_home(tmp_path / "spark", "4.1.2", release=True)
    asked: list[str] = []

    def init(where: str) -> None:
        asked.append(where)
        pretend_pyspark(monkeypatch, tmp_path / "spark" / "python" / "pyspark", "4.1.2")

    import findspark

    monkeypatch.setattr(findspark, "init", init)
    assert check_spark_home({"SPARK_HOME": home}) == "4.1.2"
    assert asked == [home]


def test_workers_run_the_drivers_python(tmp_path: Path) -> None:
    assert check_worker_python({}) == OURS
    assert check_worker_python({"PYSPARK_PYTHON": sys.executable}) == OURS
    linked = tmp_path / "python3"
    linked.symlink_to(sys.executable)
    assert check_worker_python({"PYSPARK_PYTHON": "python3", "PATH": str(tmp_path)}) == OURS


def test_another_python_for_the_workers_is_named_with_both_versions(tmp_path: Path) -> None:
    other = program(tmp_path / "python3.9", "echo 3.9")
    with pytest.raises(InstallationError) as caught:
        check_worker_python({"PYSPARK_PYTHON": str(other)})
    assert (caught.value.expected, caught.value.got) == (f"Python {OURS}", f"Python 3.9 in {other}")
    same = program(tmp_path / "same", f"echo {OURS}")
    assert check_worker_python({"PYSPARK_PYTHON": str(same)}) == OURS


def test_an_absent_python_is_a_mistake_only_where_the_workers_are_here(tmp_path: Path) -> None:
    environ = {"PYSPARK_PYTHON": "./environment/bin/python", "PATH": os.defpath}
    with pytest.raises(InstallationError, match="no Python that runs"):
        check_worker_python(environ)
    assert check_worker_python(environ, local=False) == OURS
    broken = program(tmp_path / "python", "exit 1")
    with pytest.raises(InstallationError, match="no Python that runs"):
        check_worker_python({"PYSPARK_PYTHON": str(broken)}, local=False)
