# ruff: noqa: RUF001  text in many scripts
"""Every option of a word count by all ways of counting, against answers written by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from common.core.errors import ColumnTypeError, StrategyError
from common.engine.failures import translated
from common.engine.word_rows import Strategy, TextRows, count_rows
from common.transforms.words_rules import WordRules
from tests.frames import frame, no_actions, rows_of
from tests.word_cases import WAYS, Case, write

A = "The Straße STRASSE the of don’t\nof the ＡＢ ①\n"
B = "THE ab\rstraße STRASSE 我来到北京清华大学 的 x\n李小福是创新办主任也是云计算方面的专家"


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> Case:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder, {"a.txt": A.encode(), "b.txt": B.encode()})
    return Case(spark, folder)


def together(case: Case, way: str, asked: Mapping[str, Mapping[str, Any]]) -> dict[str, set[tuple[str, ...]]]:
    """The answers to many questions, of which Spark makes one query."""

    def labelled(label: str, rows: DataFrame) -> DataFrame:
        texts = F.array(*(F.col(name).cast("string") for name in rows.columns))
        return rows.select(F.lit(label).alias("label"), texts.alias("row"))

    parts = [labelled(label, case.build(way, **settings)[0]) for label, settings in asked.items()]
    found: dict[str, set[tuple[str, ...]]] = {label: set() for label in asked}
    with translated():
        for label, row in rows_of(reduce(DataFrame.unionAll, parts)):
            assert tuple(row) not in found[label], (way, label, row)
            found[label].add(tuple(row))
    return found


def test_each_option_gives_the_answer_of_all_who_can(case: Case) -> None:
    stops = case.folder.parent / "stops.txt"
    stops.write_text("THE don't\nab\n", encoding="utf-8")
    own = case.folder.parent / "names.txt"
    own.write_text("云计算 5\n李小福 2 nr\n创新办 3 i\n", encoding="utf-8")
    pairs = [
        *("The Straße", "Straße STRASSE", "STRASSE the", "the of", "of the", "the ＡＢ"),
        *("straße STRASSE", "STRASSE 我来到北京清华大学"),
    ]
    of_two = {"ngrams": 2, "stop_words": str(stops), "min_length": 2, "case": "keep"}
    characters = {
        (str(case.folder / name), one, str(count))
        for name, text in {"a.txt": A, "b.txt": B}.items()
        for one, count in Counter(one.lower() for one in text if not one.isspace()).items()
        if count >= 2
    }
    questions: dict[str, tuple[dict[str, Any], set[tuple[str, ...]]]] = {
        "pairs of what the file leaves, with their files": (
            {**of_two, "document_frequency": True}, {(pair, "1", "1") for pair in pairs}
        ),
        "frequent characters by file": (
            {"tokenizer": "characters", "by": "file", "min_count": 2}, characters
        ),
    }  # fmt: skip
    python = {"tokenizer": "cjk", "user_dictionary": str(own), "case": "fold", "normalize": "nfkc"}
    counts = {"the": 4, "strasse": 4, "of": 2, "don't": 1, "ab": 2, "1": 1, "x": 1}
    cut = ("来到", "北京", "清华大学", "李小福", "创新办", "主任", "云计算", "方面", "专家")
    answer = {(word, str(count)) for word, count in {**counts, **dict.fromkeys(cut, 1)}.items()}
    more = {**questions, "what needs Python": ({**python, "stop_words": "zh"}, answer)}
    for way in WAYS:
        able = questions if way == "sql" else more
        found = together(case, way, {label: settings for label, (settings, _) in able.items()})
        assert found == {label: expected for label, (_, expected) in able.items()}, way


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("case", "fold", "case fold needs Python"),
        ("normalize", "nfkc", "normalize nfkc needs Python"),
        ("tokenizer", "cjk", "cjk needs jieba"),
        ("tokenizer", "regex:a", "regex: takes a pattern of Python"),
        ("tokenizer", "string:capwords", "string:capwords is a function of Python"),
    ],
)
def test_what_built_in_functions_cannot_honour_is_refused_by_name(
    case: Case, name: str, value: str, why: str
) -> None:
    with no_actions(), pytest.raises(StrategyError, match=f"strategy `sql`: .*, got {why}"):
        case.build("sql", **{name: value})


@pytest.mark.parametrize("strategy", ["arrow", "sql", "rdd"])
def test_a_collation_makes_no_words_equal(spark: SparkSession, strategy: Strategy) -> None:
    rows = frame(spark, [("Hello hello É",), ("é É hello",)], "t STRING", partitions=2)
    rows = rows.selectExpr("t COLLATE UTF8_LCASE AS t")
    text = TextRows(rows, "t", (), documents=True, place=F.lit("x"))
    rules = WordRules(case="keep", stop_words=frozenset({"É"}))
    found = rows_of(count_rows(text, rules, strategy=strategy))
    assert sorted(found) == [("Hello", 1, 1), ("hello", 2, 2), ("é", 1, 1)]


@pytest.mark.parametrize(
    ("by", "strategy", "kind", "said"),
    [
        (
            "double(1)",
            "rdd",
            StrategyError,
            "expected groups by text, .*, got double. Hint: use arrow",
        ),
        ("'g' COLLATE UTF8_LCASE", "rdd", StrategyError, "got string collate UTF8_LCASE"),
        ("map('a', 1)", "rdd", StrategyError, "got map<string,int>"),
        ("parse_json('1')", "sql", ColumnTypeError, "`g`: expected values that can be compared, got variant"),
        ("parse_json('1')", "arrow", ColumnTypeError, "got variant. Hint: cast it before"),
    ],
)
def test_groups_that_a_strategy_cannot_tell_apart_are_refused(
    spark: SparkSession, by: str, strategy: Strategy, kind: type[Exception], said: str
) -> None:
    rows = frame(spark, [("a",)], "t STRING").selectExpr("t", f"{by} AS g")
    text = TextRows(rows, "t", ("g",), documents=False, place=F.lit("x"))
    with no_actions(), pytest.raises(kind, match=said):
        count_rows(text, WordRules(), strategy=strategy)
