"""Which strategy a word count takes, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from common.core.errors import StrategyError, UsageError
from common.tuning.facts import Facts, InputFacts
from common.tuning.words import Strategy, WordQuestion, plan_words

MIB = 1024**2
CLASSIC = frozenset({"rdd"})


def facts(*, cores: int = 2, capabilities: frozenset[str] = CLASSIC, **known: Any) -> Facts:
    usual = {"file_count": 3, "size_bytes": 370 * MIB, "is_reachable": True}
    item = InputFacts("input", "text", ("in",), **{**usual, **known})
    return Facts({"input": item}, capabilities=capabilities, core_count=cores)


@pytest.mark.parametrize(
    ("known", "split_mib"),
    [
        ({}, 370 / 2),
        ({"cores": 64}, 8),
        ({"size_bytes": 10 * 1024 * MIB}, 256),
        ({"size_bytes": 100}, 8),
        ({"size_bytes": 0, "file_count": 0}, 8),
    ],
)
def test_local_files_are_read_by_the_workers_in_parts(known: dict[str, Any], split_mib: float) -> None:
    decision = plan_words("auto", WordQuestion(), facts(**known))
    assert (decision.choice, decision.evidence["read"], decision.forced) == ("arrow", "ranges", False)
    assert decision.evidence["split_bytes"] == pytest.approx(split_mib * MIB, abs=1)
    assert dict(decision.rejected) == {
        "sql": "the JVM would make a row of every word", "rdd": "a Python object for every word"
    }  # fmt: skip


def test_the_numbers_are_said() -> None:
    decision = plan_words("auto", WordQuestion(), facts())
    assert "read 370 MiB of 3 files by themselves, about 185 MiB a task" in decision.line()
    assert decision.evidence["files"] == 3
    assert decision.evidence["size_bytes"] == 370 * MIB
    assert "packed_files" not in decision.evidence


@pytest.mark.parametrize(
    ("question", "known", "buckets"),
    [
        (WordQuestion(), {"size_bytes": 1}, 1),
        (WordQuestion(), {}, 47),
        (WordQuestion(ngrams=3), {}, 139),
        (WordQuestion(), {"size_bytes": 8 * 1024 * MIB}, 1024),
        (WordQuestion(), {"size_bytes": 8 * 1024 * MIB + 1}, None),
        (WordQuestion(), {"packed_files": ("/in/a.gz",)}, None),
        (WordQuestion(column="text"), {}, None),
        (WordQuestion(is_own=True), {}, None),  # its words may be more than the text
    ],
)
def test_workers_merge_what_one_of_them_can_hold(
    question: WordQuestion, known: dict[str, Any], buckets: int | None
) -> None:
    assert plan_words("auto", question, facts(**known)).evidence.get("buckets") == buckets


def test_the_users_part_size_wins() -> None:
    known = facts(size_bytes=700_000)
    assert plan_words("auto", WordQuestion(split_bytes=7), known).evidence["split_bytes"] == 7


@pytest.mark.parametrize(
    ("strategy", "split_bytes", "known", "said"),
    [
        ("auto", 6, {"size_bytes": 700_000}, "expected 7 or more for 683.6 KiB, since each part is a task"),
        ("sql", 1_000, {}, "expected files that the workers read by themselves, got --strategy sql"),
        ("auto", 1_000, {"is_reachable": False}, "by themselves, got only Spark can open the files"),
    ],
)  # fmt: skip
def test_parts_that_cannot_be(strategy: Strategy, split_bytes: int, known: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_words(strategy, WordQuestion(split_bytes=split_bytes), facts(**known))
    assert caught.value.name == "--split-bytes"
    assert said in str(caught.value)


def test_what_cannot_be_split_is_said() -> None:
    packed = tuple(f"/in/{name}.gz" for name in "abcde")
    decision = plan_words("auto", WordQuestion(), facts(packed_files=packed))
    assert (
        "one task for each packed file, which cannot be split (a.gz, b.gz, c.gz and 2 more)"
        in decision.reason
    )
    assert decision.evidence["packed_files"] == 5
    wide = plan_words("auto", WordQuestion(encoding="utf-16", is_splittable=False), facts())
    assert "utf-16 cannot be read from the middle: one task for each file" in wide.reason


@pytest.mark.parametrize(
    ("question", "known", "why"),
    [
        (WordQuestion(column="text"), {}, "the text is in column text"),
        (WordQuestion(), {"is_reachable": False}, "only Spark can open the files"),
        (WordQuestion(), {"capabilities": frozenset()}, "the workers may be on another machine"),
    ],
)
def test_else_spark_reads_for_them(question: WordQuestion, known: dict[str, Any], why: str) -> None:
    decision = plan_words("auto", question, facts(**known))
    assert (decision.choice, decision.evidence["read"]) == ("arrow", "rows")
    assert f"Spark reads the rows for them: {why}" in decision.reason
    assert "split_bytes" not in decision.evidence


@pytest.mark.parametrize("strategy", ["sql", "rdd"])
def test_forced_choices_read_rows(strategy: Strategy) -> None:
    decision = plan_words(strategy, WordQuestion(), facts())
    assert (decision.choice, decision.forced, decision.evidence["read"]) == (strategy, True, "rows")
    assert decision.reason.startswith("as asked; ")
    assert decision.rejected == ()


@pytest.mark.parametrize(
    ("strategy", "question", "known", "message"),
    [
        ("sql", WordQuestion(why_not_sql="cjk needs jieba"), {}, "got cjk needs jieba. Hint: use arrow"),
        ("sql", WordQuestion(encoding="cp1251"), {}, "in utf-8, which is what Spark reads, got cp1251"),
        ("rdd", WordQuestion(encoding="cp1251"), {}, "expected text in utf-8"),
        ("rdd", WordQuestion(), {"capabilities": frozenset()}, "expected classic Spark, which has RDDs"),
        ("auto", WordQuestion(encoding="cp1251"), {"is_reachable": False},
         "got cp1251, and only Spark can open the files. Hint: convert the text to UTF-8"),
    ],
)  # fmt: skip
def test_what_would_be_wrong_is_refused(
    strategy: Strategy, question: WordQuestion, known: dict[str, Any], message: str
) -> None:
    with pytest.raises(StrategyError) as caught:
        plan_words(strategy, question, facts(**known))
    assert message in str(caught.value)


def test_why_not_sql_is_said_by_auto() -> None:
    decision = plan_words("auto", WordQuestion(why_not_sql="cjk needs jieba"), facts())
    assert dict(decision.rejected)["sql"] == "cjk needs jieba"
