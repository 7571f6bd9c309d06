"""A secret that is planted everywhere a user may have one shows nowhere that others can read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import FLIGHTS, Ended

CANARY = "canary-7c1e"
ONE_DAY = FLIGHTS / "date=2013-01-01"


@pytest.mark.parametrize("fails", [False, True])
def test_a_canary(saltpan: Callable[..., Ended], tmp_path: Path, fails: bool) -> None:
    logs = tmp_path / "events"
    logs.mkdir()
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.app.secret.key": CANARY,
        "spark.hadoop.fs.s3a.access.key": CANARY,
        "spark.app.url": f"jdbc:postgresql://db:5432/x?user=me&password={CANARY}",
        "spark.executorEnv.DB_PASSWORD": CANARY,
    }
    words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    score = "assert_true(distance < 0, 'token=" + CANARY + "')" if fails else "distance"
    ended = saltpan(
        *("topn", "--input", ONE_DAY, "--score", score, "--n", "1", "--verify", *words, "--verbose"),
        DB_PASSWORD=CANARY,
        DATABASE_URL=f"postgresql://me:{CANARY}@db/x",
    )
    assert (ended.code != 0) == fails, ended.err
    assert CANARY not in ended.out + ended.err
    assert CANARY not in json.dumps(ended.record)
    (log,) = [
        path for path in logs.rglob("*") if path.is_file() and path.name.startswith(("local-", "events"))
    ]
    text = log.read_text(errors="replace")
    assert "SparkListenerEnvironmentUpdate" in text
    if not fails:  # the text of a query is the user's own, and Spark writes it as it is
        assert CANARY not in text
