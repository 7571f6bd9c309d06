"""Counting in Arrow gives what the rule gives line by line: blocks, rows, groups, n-grams, batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.transforms import words_arrow, words_count, words_tally
from common.transforms.words_arrow import _counting_all, _counting_rows
from common.transforms.words_chunks import chunk_lists, words_of_chunks
from common.transforms.words_count import (
    UndecodableBytesError,
    counts_of_block,
    first_undecodable,
    valid_utf8,
)
from common.transforms.words_rows import counts_by_group, occurrences
from common.transforms.words_rules import WordRules
from common.transforms.words_tally import LongChunkError, chunk_counts
from common.transforms.words_tokens import lines_of, tokenizer_of

RULES = [
    WordRules(),
    WordRules(case="keep", min_length=2),
    WordRules(case="fold", stop_words=frozenset({"A", "\u6f22"})),
    WordRules(normalize="nfkc", stop_words=frozenset({"fi"})),
    WordRules("whitespace", case="lower"),
    WordRules("whitespace", case="fold", min_length=3),
    WordRules("characters", normalize="nfc"),
    WordRules("characters", stop_words=frozenset({"a", "\u0130"})),
    WordRules("cjk", stop_words=frozenset({"the"})),
    WordRules(ngrams=2, stop_words=frozenset({"the"})),
    WordRules("whitespace", "nfc", "keep", ngrams=3),
    WordRules("characters", ngrams=2),
    WordRules("regex:[^,]+"),
    WordRules("regex:\\b", ngrams=2),
    WordRules("regex:\\w+", ngrams=2),
    WordRules("builtins:list", min_length=2),
]
PIECES = [
    *(
        "a",
        "The",
        "the",
        "\u0130",
        "\u03a3",
        "\u00df",
        "e\u0301",
        "\ufb01",
        "\u6f22\u5b57",
        "\u6211\u6765\u5230",
    ),
    *("\U0001f600", "\ua7c0", "7", "'", "\u2019", "-", "_", ",", ".", "\u00ad", "\ufffd", "\0"),
    *(" ", " ", "\t", "\x1c", "\u00a0", "\u3000", "\u0085", "\u2028", "\n", "\r\n", "\r"),
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


def plain(text: str, rules: WordRules) -> list[str]:
    """The words of a text, line by line."""
    return [word for line in lines_of(text) for word in tokenizer_of(rules)(line)]


def summed(batches: Sequence[pa.RecordBatch], value: str = "count") -> Counter[Any]:
    """A column of counts, by all columns that are none."""
    found: Counter[Any] = Counter()
    for batch in batches:
        for row in batch.to_pylist():
            assert row["count"] > 0
            key = tuple(row[name] for name in row if name not in ("count", "documents"))
            found[key[0] if len(key) == 1 else key] += row[value]
    return Counter({key: count for key, count in found.items() if count})


@pytest.mark.parametrize("rules", RULES, ids=range(len(RULES)))
@settings(max_examples=30, deadline=None)
@given(text=TEXT)
def test_a_block_has_the_words_of_its_lines(rules: WordRules, text: str) -> None:
    found = counts_of_block(text.encode(), rules)
    assert found.undecodable == 0
    assert summed([found.counts]) == Counter(plain(text, rules))


@pytest.mark.parametrize("rules", RULES, ids=range(len(RULES)))
@settings(max_examples=20, deadline=None)
@given(texts=st.lists(TEXT, max_size=4), skipped=st.integers(0, 1))
def test_rows_have_the_words_of_their_lines(rules: WordRules, texts: list[str], skipped: int) -> None:
    # A slice: what stands before it in the same buffers is none of it.
    array = pa.array([*["not this"] * skipped, *texts], pa.string()).slice(skipped)
    for kind in (pa.string(), pa.large_string()):
        found = occurrences(array.cast(kind), rules)
        words: list[list[str]] = [[] for _ in texts]
        for row, word in zip(
            found.rows.tolist(), found.words.take(pa.array(found.ids)).to_pylist(), strict=True
        ):
            words[row].append(word)
        assert words == [plain(text, rules) for text in texts]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(TEXT, st.integers(0, 2)), max_size=6), st.sampled_from(RULES))
def test_counts_and_documents_by_group(rows: list[tuple[str, int]], rules: WordRules) -> None:
    counts: Counter[Any] = Counter()
    documents: Counter[Any] = Counter()
    for text, group in rows:
        words = Counter((group, word) for word in plain(text, rules))
        counts.update(words)
        documents.update(set(words))
    texts = pa.array([text for text, _ in rows], pa.string())
    found = counts_by_group(occurrences(texts, rules), np.array([group for _, group in rows], np.int64))
    keys = list(zip(found.groups.tolist(), found.words.to_pylist(), strict=True))
    assert len(set(keys)) == len(keys)
    assert dict(zip(keys, found.counts.tolist(), strict=True)) == counts
    assert dict(zip(keys, found.documents.tolist(), strict=True)) == documents


def tallied(text: str, rules: WordRules) -> Counter[str]:
    found = chunk_counts(text.encode(), rules)
    counts: Counter[str] = Counter()
    for chunk, count in zip(found.chunks.to_pylist(), found.counts.tolist(), strict=True):
        counts[chunk] += count
    return counts


def test_chunks_are_cut_at_ascii_only_and_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "A,b\u3000c d-'e' \u6f22,\u6f22\n" * 3
    for piece_bytes in (1, 7, 1 << 21):
        monkeypatch.setattr(words_tally, "_PIECE_BYTES", piece_bytes)
        assert tallied(text, WordRules()) == {"a": 3, "b\u3000c": 3, "d-'e'": 3, "\u6f22": 6}
    lists = chunk_lists(pa.array(["x", "B c;d", ""]).slice(1), WordRules("whitespace", case="keep"))
    assert [[chunk for chunk in row if chunk] for row in lists.to_pylist()] == [["B", "c;d"], []]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.integers(1, 26).flatmap(lambda size: st.text("ab\u00e9\u6f22", min_size=size, max_size=size))
        | st.sampled_from(["a" * 8, "a" * 9, "a" * 16, "a" * 17, "a" * 8 + "b", "b" * 8 + "a", "a\0", "\0"])
    ),
    st.booleans(),
)
def test_chunks_of_any_length_and_of_equal_hashes(chunks: list[str], collide: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if collide:  # every pair has the same hash, and few are sorted at once
            patch.setattr(words_tally, "_MIX", (0, 0))
            patch.setattr(words_tally, "_PLACE_BITS", 2)
        assert tallied(" ".join(chunks), WordRules("whitespace", case="keep")) == Counter(chunks)


def test_more_pairs_than_are_sorted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_tally, "_PLACE_BITS", 2)
    chunks = [f"{'pair' * 2}{number % 5}" for number in range(23)]
    assert tallied(" ".join(chunks), WordRules("whitespace")) == Counter(chunks)


def test_a_chunk_that_is_too_long_is_said_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_tally, "_PIECE_BYTES", 4)
    monkeypatch.setattr(words_tally, "LONGEST_BYTES", 12)
    assert tallied("ab cdefgh ij", WordRules()) == {"ab": 1, "cdefgh": 1, "ij": 1}
    with pytest.raises(LongChunkError) as caught:
        counts_of_block(b"ab abcdefghijklm no", WordRules())
    assert caught.value.offset_bytes == 3


def test_characters_are_decoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a\u00e9\u6f22\U0001f600 a\u0130\n"
    expected = Counter([*"a\u00e9\u6f22\U0001f600a", "i\u0307"])
    for step in (1, 2, 3, 5, 1_000):
        monkeypatch.setattr(words_count, "_DECODED_BYTES", step)
        found = counts_of_block(text.encode(), WordRules("characters"))
        assert summed([found.counts]) == expected, step


def test_words_of_chunks_say_whose_they_are() -> None:
    found = words_of_chunks(
        pa.array(["plain", "o\u2019", "", "x\u3000y", "the"]), WordRules(stop_words=frozenset({"the"}))
    )
    pairs = sorted(zip(found.owners.to_pylist(), found.words.to_pylist(), strict=True))
    assert pairs == [(0, "plain"), (1, "o"), (3, "x"), (3, "y")]


BAD = [
    b"ok \xff",
    b"\xe6\xbc \xc3(",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98",
    b"\xef\xbf\xbd \xc0\xaf",
    "\u6f22".encode(),
]


@pytest.mark.parametrize("block", BAD)
def test_bytes_that_are_no_text(block: bytes) -> None:
    text = block.decode("utf-8", "replace")
    replaced = text.count("\ufffd") - block.count(b"\xef\xbf\xbd")
    assert valid_utf8(block, "replace") == (text.encode(), replaced)
    if not replaced:
        assert first_undecodable(block) == len(block)
        return
    with pytest.raises(UndecodableBytesError) as caught:
        counts_of_block(block, WordRules())
    with pytest.raises(UnicodeDecodeError) as pythons:
        block.decode()
    assert caught.value.offset_bytes == first_undecodable(block) == pythons.value.start
    for rules in (WordRules("whitespace"), WordRules("whitespace", ngrams=2), WordRules("characters")):
        found = counts_of_block(block, rules, on_decode_error="replace")
        assert (summed([found.counts]), found.undecodable) == (Counter(plain(text, rules)), replaced)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(1, 9)), max_size=5)),
    st.sampled_from([0, 1, 60, 1 << 20]),
)
def test_a_dictionary_that_spills_gives_the_same_sums(
    blocks: list[list[tuple[str | None, int]]], held_bytes: int
) -> None:
    expected: Counter[str | None] = Counter()
    batches = []
    for block in blocks:
        for word, count in block:
            expected[word] += count
        words = pa.array([word for word, _ in block], pa.string())
        batches.append(pa.record_batch({"word": words, "count": pa.array([n for _, n in block], pa.int64())}))
    found = list(words_count.summed_batches(batches, held_bytes=held_bytes, rows=2))
    assert summed(found) == expected
    assert all(batch.num_rows <= 2 for batch in found)
    if held_bytes == 1 << 20 and len(blocks) > 1:
        assert sum(batch.num_rows for batch in found) == len(expected)


ROWS = [b"a b", b"", b"b\nA c", b"b \xff", b"\xfe\xff", b"a"]
KEYS = [1, None, 1, None, 2, 2]


@pytest.mark.parametrize("gathered_bytes", [1, 40, 1 << 24])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_rows_of_sparks_batches(monkeypatch: pytest.MonkeyPatch, gathered_bytes: int, kind: Any) -> None:
    monkeypatch.setattr(words_arrow, "GATHERED_BYTES", gathered_bytes)
    binary = pa.large_binary() if kind == pa.large_string() else pa.binary()
    texts = pa.array(ROWS, binary).view(kind)  # not checked, as from Spark
    keys = pa.array(KEYS, pa.int32())
    both = pa.StructArray.from_arrays([keys, keys.is_null()], ["k", "n"])
    whole = pa.record_batch({"text": texts, "group": keys, "both": both})
    batches = [whole.slice(at, 2) for at in (0, 2, 4)]
    expected: Counter[Any] = Counter()
    for row, key in zip(ROWS, KEYS, strict=True):
        text = row.decode("utf-8", "replace")
        expected.update((key, word) for word in plain(text, WordRules("whitespace")))
        expected[(key, None)] += text.count("\ufffd")
    expected = Counter({key: count for key, count in expected.items() if count})
    total: Counter[Any] = Counter()
    for (_, word), count in expected.items():
        total[word] += count
    rules = WordRules("whitespace")
    assert summed(list(_counting_all(rules, "replace")(b.select(["text"]) for b in batches))) == total
    count = _counting_rows(rules, "replace", ["group", "word", "count"])
    assert summed(list(count(b.select(["text", "group"]) for b in batches))) == expected
    found = list(count(b.select(["text", "both"]) for b in batches))
    structs: Counter[Any] = Counter()
    for group, word, number in _rows(found):
        structs[(group["k"], word)] += number
    assert structs == expected


def _rows(batches: list[pa.RecordBatch]) -> list[tuple[Any, Any, int]]:
    return [(row["group"], row["word"], row["count"]) for batch in batches for row in batch.to_pylist()]


def test_documents_are_rows_and_replacements_are_in_none() -> None:
    texts = pa.array(ROWS, pa.binary()).view(pa.string())
    count = _counting_rows(WordRules(), "replace", ["word", "count", "documents"])
    found = list(count([pa.record_batch({"text": texts})]))
    assert summed(found) == {"a": 3, "b": 3, "c": 1, None: 3}
    assert summed(found, "documents") == {"a": 3, "b": 3, "c": 1}
    with pytest.raises(UndecodableBytesError):
        list(_counting_rows(WordRules(), "fail", ["word", "count"])([pa.record_batch({"text": texts})]))
