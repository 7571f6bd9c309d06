"""What `saltpan submit` decides before spark-submit runs. Nothing is fetched, and no JVM starts."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common.core.errors import ConfigurationError
from common.engine import class_archive, comet, fast_start
from common.engine.jars import Fetched
from common.engine.java import spark_home
from common.runs import accelerator_choice, submit_session
from common.runs.acceleration import note_submitted
from common.runs.submit import submit_job
from common.runs.submit_decisions import handed_over
from common.runs.submit_session import SubmittedSession, submitted_session
from common.settings.command_line import Command
from common.settings.inputs import InputRequest
from common.settings.job import JobSettings
from common.settings.profiles import load_profile
from common.tuning import accelerator, start
from common.tuning.decision import Decision
from common.tuning.machine import Machine

CONF = Path(__file__).resolve().parents[2] / "conf"
GIB = 1024**3
V3 = frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"])
LAPTOP = Machine(16 * GIB, 16 * GIB, 8, "linux-x86_64", V3)
IMAGE = ["--conf", "spark.kubernetes.container.image=suite:1"]
K8S = ["--profile", "k8s+comet", "--master", "k8s://https://h:6443", *IMAGE]
STANDALONE = ["--profile", "standalone+comet", "--master", "spark://h:1"]
JOB = """
from common.runs import Job, JobSettings, run_job

class All(Job[JobSettings]):
    "Every row."
    settings = JobSettings

    def plain(self, inputs, settings):
        return inputs["input"]

if __name__ == "__main__":
    raise SystemExit(run_job(All()))
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A laptop with a jar at hand, a Java that is a folder, and logs as they were before."""
    home = tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text('JAVA_VERSION="17.0.1"')
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_MASTER"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "spark").symlink_to(spark_home({}))  # wherever this runs, its path has no space in it
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for module in (accelerator_choice, submit_session):
        monkeypatch.setattr(module, "read_machine", lambda: LAPTOP)
    monkeypatch.setattr(comet, "fetch_jar", lambda *_, **__: Fetched(Path("/jars/comet.jar")))
    root = logging.getLogger("saltpan")
    before = list(root.handlers), root.level, root.propagate
    yield
    root.handlers[:], root.propagate = before[0], before[2]
    root.setLevel(before[1])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(pa.table({"x": [1, 2, 3]}), folder / "a.parquet")
    return folder


Text = Callable[..., tuple[dict[str, str], str]]


@pytest.fixture
def text(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Text:
    """The properties that a dry run prints, and what it says."""
    (tmp_path / "all.py").write_text(JOB)

    def of(*words: str, path: Path = data) -> tuple[dict[str, str], str]:
        job = [str(tmp_path / "all.py"), *words, "--dry-run", "--", "--input", str(path)]
        assert submit_job(job) == 0
        printed = capsys.readouterr()
        lines = printed.out.partition("# command")[0].splitlines()
        return {key: value for key, _, value in (line.partition("=") for line in lines)}, printed.err

    return of


def test_comet_on_this_machine(text: Text) -> None:
    values, said = text("--profile", "local+comet")
    assert values["spark.plugins"] == "org.apache.spark.CometPlugin"
    assert values["spark.jars"] == "file:///jars/comet.jar"
    assert values["spark.driver.memory"] == "2g"
    # (0.6 * 16384 - 320 - 8 * 128 - 2048) / 1.15 = 5598.6
    assert values["spark.memory.offHeap.size"] == "5598m"
    assert "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" in values["spark.driver.extraJavaOptions"]
    assert said == "accelerator: comet: Comet 1.2.0 runs scans, aggregates, joins and windows natively\n"


def test_sizes_that_a_flag_names_stay(text: Text) -> None:
    own = ["--conf", "spark.memory.offHeap.size=1g", "--conf", "spark.jars=/a.jar"]
    values, _ = text("--profile", "local+comet", *own, "--conf", "spark.driver.memory=3000m")
    assert values["spark.memory.offHeap.size"] == "1g"
    assert values["spark.driver.memory"] == "3000m"
    assert values["spark.jars"] == "/a.jar,file:///jars/comet.jar"


def test_little_data_is_left_to_spark(text: Text) -> None:
    values, said = text()
    assert [key for key in values if "comet" in key or key == "spark.jars"] == []
    assert re.search(r"accelerator: none: plain Spark: \d+ B of input is less than the 64 MiB", said)
    assert "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" in values["spark.driver.extraJavaOptions"]


def test_much_data_is_not(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of some hundred bytes is much where 100 are the limit."""
    monkeypatch.setattr(accelerator, "WORTH_FROM_BYTES", 100)
    monkeypatch.setattr(start, "FAST_UP_TO_BYTES", 100)
    values, said = text()
    assert values["spark.jars"] == "file:///jars/comet.jar"
    assert "of Parquet is more than 100 B" in said
    assert "TieredStopAtLevel" not in values["spark.driver.extraJavaOptions"]
    values, _ = text("--profile", "local+none")
    assert "spark.plugins" not in values


@pytest.mark.parametrize(
    ("words", "heap", "off_heap", "overhead"),
    [
        (["--profile", "yarn+comet"], "2g", "3561m", "2992m"),
        (["--profile", "yarn+comet", "--deploy-mode", "cluster"], "2g", "3561m", "2992m"),
        (K8S, "2g", "3561m", "2992m"),
        (
            [*STANDALONE, "--conf", "spark.executor.memory=3g"],
            "1g", "1780m", "",
        ),
    ],
)  # fmt: skip
def test_comet_on_a_cluster_when_asked_for(
    text: Text, words: list[str], heap: str, off_heap: str, overhead: str
) -> None:
    values, said = text(*words)
    assert values["spark.jars"] == "file:///jars/comet.jar"
    assert values["spark.memory.offHeap.enabled"] == "true"
    assert values["spark.executor.memory"] == heap
    assert values["spark.memory.offHeap.size"] == off_heap
    assert values.get("spark.executor.memoryOverhead", "") == overhead
    assert values["spark.driver.memory"] == "2g"
    assert "SerialGC" not in values["spark.driver.extraJavaOptions"]
    assert f"of an executor's {3 if heap == '1g' else 6} GiB: {heap[0]} GiB heap" in said


@pytest.mark.parametrize(
    "words",
    [
        ["--profile", "yarn"],
        ["--profile", "k8s", "--master", "k8s://https://h:6443", *IMAGE],
        ["--profile", "standalone", "--master", "spark://h:1"],
    ],
)
def test_a_cluster_is_not_asked_by_itself(text: Text, words: list[str]) -> None:
    values, said = text(*words)
    assert said == (
        "accelerator: none: plain Spark: whether the executors of a cluster can run it is not known here "
        f"(--profile {words[1]}+comet asks for it)\n"
    )
    assert "spark.plugins" not in values
    assert "spark.jars" not in values


@pytest.mark.parametrize("words", [["--profile", "local+comet"], ["--profile", "yarn+comet"], K8S])
def test_without_a_network_it_is_plain_spark(
    text: Text, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr(comet, "fetch_jar", lambda *_, **__: Fetched(None, "no route to host"))
    values, said = text(*words)
    assert said == "accelerator: none: plain Spark: Comet's jar cannot be had: no route to host\n"
    assert [key for key in values if "comet" in key or key in ("spark.jars", "spark.plugins")] == []
    assert values.get("spark.executor.memory", "6g") == "6g"


def test_executors_that_are_too_small(text: Text) -> None:
    values, said = text(*STANDALONE)
    assert "plain Spark: executors of 1 GiB are too small to divide" in said
    assert "spark.plugins" not in values


def test_the_drivers_machine_counts_where_the_driver_is(text: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    mac = Machine(16 * GIB, 16 * GIB, 8, "darwin-arm64")
    for module in (accelerator_choice, submit_session):
        monkeypatch.setattr(module, "read_machine", lambda: mac)
    values, said = text("--profile", "yarn+comet")
    assert "no native library for darwin-arm64" in said
    assert "spark.plugins" not in values
    values, _ = text("--profile", "yarn+comet", "--deploy-mode", "cluster")
    assert values["spark.plugins"] == "org.apache.spark.CometPlugin"


def test_what_is_typed_wrong_is_told_before_anything_is_decided(
    text: Text, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean spark\.executor\.memory"):
        text("--profile", "yarn+comet", "--conf", "spark.executor.memroy=2g")
    with pytest.raises(ConfigurationError, match="--master spark://HOST:7077"):
        text("--profile", "standalone+comet")
    assert "accelerator" not in capsys.readouterr().err


def test_an_input_that_is_not_there_is_the_jobs_to_tell(text: Text, tmp_path: Path) -> None:
    values, said = text(path=tmp_path / "nowhere")
    assert said == "accelerator: none: plain Spark: an input could not be looked at\n"
    assert "spark.plugins" not in values


def session(data: Path, *, how: str = "auto", master: str = "local[*]", **overrides: str) -> SubmittedSession:
    settings = {key.replace("_", "."): value for key, value in overrides.items()}
    site = {"local": "local", "spark": "standalone", "yarn": "yarn"}[re.split(r"\W", master)[0]]
    request = InputRequest("input", (str(data),))
    return submitted_session(
        load_profile(site, folder=CONF, overrides=settings),
        Command(JobSettings(start=how), (request,), {}),  # type: ignore[arg-type]
        master=master,
        deploy_mode="client",
        folder=CONF,
        overrides=settings,
        environ=os.environ,
    )


@pytest.mark.parametrize(
    ("master", "choices"),
    [("local[*]", {"accelerator": "none", "start": "fast"}), ("yarn", {"accelerator": "none"})],
)
def test_the_record_of_the_job_is_told(data: Path, master: str, choices: dict[str, str]) -> None:
    setting = session(data, master=master).profile.settings["spark.saltpan.decisions"]
    notes = json.loads(setting.value)
    assert {note["about"]: note["choice"] for note in notes} == choices
    assert all(note["reason"] for note in notes)


def test_a_dry_run_prints_nothing_that_changes_by_the_minute(text: Text) -> None:
    values, _ = text()
    assert [key for key in values if key.startswith("spark.saltpan")] == []


SHORT = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def test_the_first_driver_records_an_archive(data: Path, tmp_path: Path) -> None:
    options = session(data).start.java_options
    assert options[:2] == SHORT
    classes = tmp_path / "cache" / "saltpan" / "classes"
    assert re.fullmatch(rf"-XX:ArchiveClassesAtExit={classes}/\w+\.{os.getpid()}\.part", options[-1])


def test_a_driver_of_a_cluster_gets_the_archive_alone(data: Path) -> None:
    for master in ("spark://h:1", "yarn", "local-cluster[2,1,1024]"):
        options = session(data, master=master).start.java_options
        assert not set(SHORT) & set(options)
        assert "ArchiveClassesAtExit" in options[-1]


def test_a_full_start_when_asked_for(data: Path) -> None:
    options = session(data, how="full").start.java_options
    assert not set(SHORT) & set(options)
    assert "ArchiveClassesAtExit" in options[-1]


def test_a_collector_of_the_users_own_is_the_only_one(data: Path) -> None:
    options = session(data, spark_driver_extraJavaOptions="-XX:+UseParallelGC").start.java_options
    assert options[0] == SHORT[0]
    assert SHORT[1] not in options


def test_no_archive_where_none_fits(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: Text
) -> None:
    own = session(data, spark_driver_extraJavaOptions="-XX:SharedArchiveFile=/mine.jsa").start
    assert own.java_options == SHORT
    assert session(data, spark_driver_extraClassPath="/a.jar").start.java_options == SHORT
    values, _ = text()  # a dry run: what it prints may be used on any day
    assert "Archive" not in values["spark.driver.extraJavaOptions"]
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert session(data).start.java_options == SHORT


def recorded(found: SubmittedSession) -> Path:
    assert found.start.archive is not None
    path = found.start.archive.recording
    path.write_text("classes")
    return path


@pytest.mark.parametrize("code", [3, 143])
def test_what_a_failed_job_recorded_is_thrown_away(data: Path, code: int) -> None:
    found = session(data)
    path = recorded(found)
    found.start.ended(code, environ=os.environ)
    assert not path.exists()


def test_what_a_good_job_recorded_is_kept_for_the_class_path_of_the_launcher(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = session(data)
    path = recorded(found)
    asked: list[dict[str, object]] = []
    monkeypatch.setattr(fast_start, "keep_recording", lambda archive, **words: asked.append(words))
    monkeypatch.setattr(fast_start, "launch_class_path", lambda *_, **__: "/conf:/jars/*")
    found.start.ended(0, environ=os.environ)
    java = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    assert asked == [{"jvm_pid": None, "java": java, "class_path": "/conf:/jars/*"}]
    assert path.exists()


def test_no_class_path_no_archive(data: Path) -> None:
    found = session(data)  # whose java ends with an error
    path = recorded(found)
    found.start.ended(0, environ=os.environ)
    assert not path.exists()


def test_the_class_path_of_the_launcher(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "scala-library-2.13.17.jar").touch()
    java = tmp_path / "some java"
    # As Spark's launcher answers: the words of a command, each with a NUL behind it.
    java.write_text(
        '#!/bin/sh\nprintf "\\0\\njava\\0-cp\\0/a b:%s/%s\\0-Xmx1g\\0" $SPARK_HOME $SPARK_SCALA_VERSION\n'
    )
    java.chmod(0o755)
    found = class_archive.launch_class_path(str(java), str(tmp_path), environ={"PATH": os.defpath})
    assert found == f"/a b:{tmp_path}/2.13"


def test_recordings_of_killed_processes_go(data: Path, tmp_path: Path) -> None:
    classes = tmp_path / "cache" / "saltpan" / "classes"
    classes.mkdir(parents=True)
    for name, days in (("a.1.part", 3), ("b.2.part", 1), ("c.jsa", 30)):
        (classes / name).touch()
        then = (classes / name).stat().st_mtime - days * 24 * 3600
        os.utime(classes / name, (then, then))
    session(data)
    assert sorted(path.name for path in classes.iterdir()) == ["b.2.part", "c.jsa"]


def notes_of(configuration: dict[str, str]) -> list[dict[str, object]]:
    """What a job under spark-submit writes into its record, by the settings of its session."""
    spark = SimpleNamespace(conf=SimpleNamespace(get=configuration.get), version="4.1.3")
    record = SimpleNamespace(decisions=[])
    note_submitted(SimpleNamespace(spark=spark, name="submit"), [], record=record)  # type: ignore[arg-type]
    return list(record.decisions)


def test_the_record_tells_which_flag_is_missing() -> None:
    (note,) = notes_of({})
    assert (note["about"], note["choice"]) == ("accelerator", "none")
    assert "add --packages org.apache.datafusion:comet-spark-spark4.1_2.13:" in str(note["reason"])


def test_the_record_tells_what_was_handed_over_and_whether_it_works() -> None:
    decided = handed_over({"accelerator": Decision("comet", "much data"), "start": Decision("full", "same")})
    notes = notes_of({decided.key: decided.value})
    assert [(note["about"], note["choice"], note["reason"]) for note in notes] == [
        ("accelerator", "comet", "much data"),
        ("start", "full", "same"),
    ]
    assert [note.get("active") for note in notes] == [False, None]  # a session without its plugin


def test_another_accelerators_session_is_its_own_matter() -> None:
    assert notes_of({"spark.plugins": "com.nvidia.spark.SQLPlugin"}) == []
