"""The same job on every site, with and without an accelerator: the same answer, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.e2e.conftest import FLIGHTS, ROOT, Ended
from tests.e2e.test_connect import remote, server  # noqa: F401  fixtures
from tests.e2e.test_submit import LOOPBACK, QUICK, SMALL, master, saltpan_submit  # noqa: F401  fixtures

Run = Callable[..., Ended]

# Ties that are kept, a score with NULLs, a text partition, an order that only the other columns settle.
ASKED = ["--input", FLIGHTS, "--partition-by", "origin", "--score", "arr_delay", "--n", "20", "--ties", "all"]
ASKED += ["--columns", "origin,dest,carrier,flight,arr_delay", "--verify", "--format", "csv"]


def expected_rows() -> list[tuple[str, int]]:
    """Rank and delay of each origin's rows, by DuckDB."""
    query = f"""
        SELECT origin, arr_delay FROM read_parquet('{FLIGHTS}/*/*.parquet')
        QUALIFY rank() OVER (PARTITION BY origin ORDER BY arr_delay DESC NULLS LAST) <= 20"""
    with duckdb.connect() as connection:
        return sorted((str(origin), int(delay)) for origin, delay in connection.execute(query).fetchall())


@pytest.mark.usefixtures("comet_jar")
def test_one_answer_everywhere(
    saltpan: Run,
    submit: Run,
    saltpan_submit: Run,  # noqa: F811
    master: str,  # noqa: F811
    remote: str,  # noqa: F811
) -> None:
    on_cluster = ["topn", "--profile", "standalone", "--master", master, *QUICK, *SMALL]
    ended = {
        "local": saltpan("topn", *ASKED, "--profile", "local+none"),
        "local+comet": saltpan("topn", *ASKED, "--profile", "local+comet"),
        "spark-submit": submit(ROOT / "jobs" / "topn.py", *ASKED),
        "standalone": saltpan_submit(*on_cluster, "--", *ASKED, **LOOPBACK),
        "connect": saltpan("topn", *ASKED, "--remote", remote),
    }
    found: dict[str, Any] = {}
    for site, run in ended.items():
        assert run.code == 0, (site, run.err)
        assert run.record is not None, site
        found[site] = run.record["verification"]["planned"]
    assert len({str(fingerprint) for fingerprint in found.values()}) == 1, found
    assert found["local"]["row_count"] == len(expected_rows())
    shown = {site: sorted(run.out.splitlines()) for site, run in ended.items()}
    assert all(rows == shown["local"] for rows in shown.values())


def test_lookups_on_a_cluster_and_a_server(
    saltpan: Run,
    saltpan_submit: Run,  # noqa: F811
    master: str,  # noqa: F811
    remote: str,  # noqa: F811
    tmp_path: Path,
) -> None:
    """Workers of a cluster are sent the variable; a server has none, and the join stands in."""
    days, planes = FLIGHTS / "date=2013-01-0*", FLIGHTS.parent / "planes"
    asked = ["--facts", days, "--dimension", planes, "--on", "tailnum", "--take", "model=of,year=built"]
    asked += ["--missing", "quarantine"]
    variable = [*asked, "--strategy", "variable"]
    on_cluster = ["lookup", "--profile", "standalone", "--master", master, *QUICK, *SMALL, "--"]
    ended = {
        "standalone": saltpan_submit(*on_cluster, *variable, "--output", tmp_path / "standalone", **LOOPBACK),
        "connect": saltpan("lookup", *asked, "--output", tmp_path / "connect", "--remote", remote),
    }
    with duckdb.connect() as connection:
        flights = f"read_parquet('{days}/*.parquet') f"
        keys, named = "sched_dep_time, carrier, flight, tailnum", "model AS of, p.year AS built"
        joined = f"SELECT {keys}, {named} FROM {flights} JOIN read_parquet('{planes}/*') p USING (tailnum)"
        expected = sorted(connection.execute(joined).fetchall(), key=repr)
        (facts, nulls), = connection.execute(
            f"SELECT count(*), count(*) FILTER (tailnum IS NULL) FROM {flights}"
        ).fetchall()  # fmt: skip
        missing = facts - len(expected)
        assert missing > nulls > 0
        for site, run in ended.items():
            assert run.code == 0, (site, run.err)
            assert run.record is not None
            counted = {"facts": facts, "matched": len(expected), "missing": missing, "null_keys": nulls}
            assert run.record["counters"] == {**counted, "duplicates": 0}, site
            read = f"SELECT {keys}, of, built FROM read_parquet('{tmp_path / site}/*.parquet')"
            assert sorted(connection.execute(read).fetchall(), key=repr) == expected, site
            rejects = f"SELECT count(*) FROM read_parquet('{tmp_path / site}.rejects/*.parquet')"
            assert connection.execute(rejects).fetchall() == [(missing,)], site
    assert "decision: variable: as asked; 3,322 dimension rows" in ended["standalone"].err
    (line,) = [text for text in ended["connect"].err.splitlines() if text.startswith("decision:")]
    assert line.startswith("decision: join: 3,322 dimension rows")
    assert "not variable (it needs broadcast variables, which this engine does not have)" in line
    refused = saltpan("lookup", *variable, "--output", tmp_path / "refused", "--remote", remote)
    assert refused.code == 2, refused.err
    (error,) = [text for text in refused.err.splitlines() if text.startswith("ERROR")]
    assert "it needs broadcast variables, which this engine does not have. Hint: use join or auto" in error
    assert list(tmp_path.glob("*refused*")) == []
