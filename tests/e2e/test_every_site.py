"""The same job on every site, with and without an accelerator: the same answer, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
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
