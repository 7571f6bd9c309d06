"""Tables by name, with the nearest names when there is none."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from common.core.errors import PathAbsentError, did_you_mean
from common.engine.listing import TABLE_PREFIX


def read_table(spark: SparkSession, path: str) -> DataFrame:
    """The table of `table:NAME`.

    Args:
        spark: The session, classic or Connect.
        path: "table:" and a name of one to three parts.

    Raises:
        PathAbsentError: no table or view of that name.

    Plan:
        Lazy; one look into the catalogue.
    """
    name = path.removeprefix(TABLE_PREFIX)
    if not _exists(spark, name):
        near = did_you_mean(name, _names_near(spark, name))
        hint = near or f"`{TABLE_PREFIX}DATABASE.NAME` names a table; leave `{TABLE_PREFIX}` out for a path"
        raise PathAbsentError("table", name, expected="a table or view", got="none of that name", hint=hint)
    return spark.table(name)


def _exists(spark: SparkSession, name: str) -> bool:
    try:
        return bool(name) and spark.catalog.tableExists(name)
    except AnalysisException:  # the name does not parse, or its database is not there
        return False


def _names_near(spark: SparkSession, name: str) -> list[str]:
    """Tables of the database that was named, or of the current one; databases when that is wrong."""
    database, dot, _ = name.rpartition(".")
    prefix = f"{database}." if dot else ""
    try:
        return [prefix + table.name for table in spark.catalog.listTables(database or None)]
    except AnalysisException:
        table = name.rpartition(".")[2]
        return [f"{found.name}.{table}" for found in spark.catalog.listDatabases()]
