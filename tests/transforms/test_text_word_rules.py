# ruff: noqa: RUF001  text in many scripts
"""The options of a word count, and every code point, by each strategy against the rule in Python."""

from __future__ import annotations

import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from common.core.errors import StrategyError
from common.transforms.words_rules import WordRules
from common.transforms.words_tokens import lines_of, tokenizer_of
from jobs.word_count import Settings, _rules
from tests.word_cases import Case, write


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path) -> Case:
    folder = tmp_path / "in"
    folder.mkdir()
    return Case(spark, folder)


def test_every_option_that_several_strategies_take(case: Case) -> None:
    text = (
        "The 'Don’t' Σ ΑΣ\u00adΑ x\u200by İ ß\tof\u3000The, the\nOF cat_dog e\u0301 \ufb01 你好，再见 "
        "\ua7c0Ⴠ \U0001f600\r\nthe cat"
    )
    write(case.folder, {"a.txt": text.encode(), "b.txt": b"of cat"})
    stops = case.folder.parent / "stops.txt"
    stops.write_text("THE don't", encoding="utf-8")
    for asked in (
        {"ngrams": 2, "stop_words": str(stops), "document_frequency": True},
        {"tokenizer": "whitespace", "min_length": 2, "stop_words": "en"},
        {"tokenizer": "characters", "ngrams": 3, "by": "file"},
    ):
        expected = _plain(case.folder, Settings(**asked))
        assert len(expected) > 3
        for way in ("ranges", "sql"):  # the others share the rule with them
            assert case.rows(way, **asked) == expected, (way, asked)
    only_python = (
        {"tokenizer": "cjk"},
        {"tokenizer": "regex:[a-z]+", "normalize": "nfkc"},
        {"tokenizer": "builtins:list", "case": "fold"},
    )
    for asked in only_python:
        with pytest.raises(StrategyError, match="expected what built-in functions can do exactly"):
            case.rows("sql", **asked)
    for way in ("ranges", "rows", "rdd"):
        assert case.rows(way, **only_python[1]) == _plain(case.folder, Settings(**only_python[1])), way


def _plain(folder: Path, settings: Settings) -> list[tuple[Any, ...]]:
    """The answer by the rule, line by line; the rule has tests of its own."""
    tokens = tokenizer_of(_rules(settings))
    counts: Counter[Any] = Counter()
    documents: Counter[Any] = Counter()
    for path in sorted(folder.iterdir()):
        words = [word for line in lines_of(path.read_bytes().decode()) for word in tokens(line)]
        keys = Counter((str(path), word) if settings.by == "file" else (word,) for word in words)
        counts.update(keys)
        documents.update(set(keys))
    more = settings.document_frequency
    kept = [
        (*key, n, *([documents[key]] if more else [])) for key, n in counts.items() if n >= settings.min_count
    ]
    return sorted(kept, key=repr)


def test_code_points_at_the_edges_of_ranges_are_the_same_to_java_and_to_python(case: Case) -> None:
    # Where Python's categories change, each side of it; a table that is off by a range shows there.
    kinds = [unicodedata.category(chr(point)) for point in range(0x110000)]
    edges = {at + side for at in range(1, 0x110000) if kinds[at] != kinds[at - 1] for side in (-1, 0)}
    few = [at for at in sorted({*edges, *range(1, 0x2000, 5)}) if at not in (0, 10, 13) and kinds[at] != "Cs"]
    text = "".join(f"{chr(point)}\nA{chr(point)}\u03a3\nA\u03a3{chr(point)}a\n" for point in few)
    write(case.folder, {"a.txt": text.encode()})
    for tokenizer in ("unicode", "whitespace"):
        expected = Counter(
            word for line in lines_of(text) for word in tokenizer_of(WordRules(tokenizer))(line)
        )
        for way in ("ranges", "sql"):
            rows, _ = case.build(way, tokenizer=tokenizer)
            table = rows.toArrow()
            found = dict(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))
            assert {
                word for word in found.keys() | expected.keys() if found.get(word) != expected.get(word)
            } == set()
