# ruff: noqa: RUF001  text in many scripts
"""The texts of bench-words: lines of words drawn by DuckDB's hashes, the same on every machine.

latin  words of a vocabulary of 100,000, the rank of a word drawn so that few words make most of the text
mixed  half of the lines Latin, a quarter Cyrillic, a quarter Chinese, which has no spaces between words
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.bench_data import DATA, ROOT

if TYPE_CHECKING:
    import pyarrow as pa

TEXTS = ("latin", "mixed")
WORDS_PER_LINE = 12
_VOCABULARY, _DRAWS = 100_000, 1_000_000
_LINES_AT_ONCE = 200_000
_LATIN = "eariotnslcudpmhgbfywkvxzjqo"
_CYRILLIC = "оеаинтсрвлкмдпуяыьгзбчйхжшю"
_HAN = "的一是不了人我在有他这中大来上个国到说们为子和你地出道"
_ENDS = ("", "", ",", "", "'s", "", "", "-x", "", "", "", ".")
_HAN_ENDS = ("，", "", "，", "，", "", "，", "", "，", "，", "", "，", "。")
# What a line takes, to make as many lines as a size asks for.
_LINE_BYTES = {"latin": 77.4, "mixed": 122.7}


def text_file(name: str, *, megabytes: int) -> Path:
    """Where a text of a size is."""
    return DATA / f"words-{megabytes}" / f"{name}.txt"


def make_texts(*, megabytes: int) -> None:
    """Make what is missing of the texts; a file that is there is whole."""
    for name in TEXTS:
        path = text_file(name, megabytes=megabytes)
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        print(f"making {path.relative_to(ROOT)}", file=sys.stderr)
        part = path.with_suffix(f".{os.getpid()}.part")
        _write(part, name, lines=round(megabytes * 1_000_000 / _LINE_BYTES[name]))
        part.replace(path)


def _write(path: Path, name: str, *, lines: int) -> None:
    import duckdb

    latin = (_words(_LATIN, _ENDS), " ")
    others = (
        [(_words(_CYRILLIC, _ENDS), " "), latin, (_words(_HAN, _HAN_ENDS), "")] if name == "mixed" else []
    )
    kinds = [latin, *others]
    columns = [f"hash(i * {WORDS_PER_LINE} + {at}) % {_DRAWS} AS w{at}" for at in range(WORDS_PER_LINE)]
    with duckdb.connect() as connection, path.open("wb") as file:
        for start in range(0, lines, _LINES_AT_ONCE):
            some = f"range({start}, {min(lines, start + _LINES_AT_ONCE)}) t(i)"
            for number, (words, between) in enumerate(kinds):
                query = f"SELECT {', '.join(columns)} FROM {some} WHERE i % {len(kinds)} = {number}"
                draws = connection.sql(query).to_arrow_table()
                file.write(_text(draws, words, between))


def _text(draws: pa.Table, words: Sequence[pa.Array], between: str) -> bytes:
    """A line for each row of draws."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = [words[at].take(column.combine_chunks()) for at, column in enumerate(draws.columns)]
    lines = pc.binary_join_element_wise(*found, pa.scalar(between))
    whole = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines), "\n")
    return whole[0].as_py().encode() + b"\n" if len(lines) else b""


def _words(letters: str, ends: Sequence[str]) -> list[pa.Array]:
    """For each place in a line the words by draw; the first one has a capital letter.

    The rank of a word is the exponential of a uniform number: Zipf's law, near enough.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    vocabulary = pa.array([_word(rank, letters) for rank in range(1, _VOCABULARY + 1)])
    ranks = [int(_VOCABULARY ** (draw / _DRAWS)) - 1 for draw in range(_DRAWS)]
    drawn = vocabulary.take(pa.array(ranks, pa.int32()))
    places = [pc.binary_join_element_wise(drawn, pa.scalar(end), "") for end in ends]
    return [pc.utf8_capitalize(places[0]), *places[1:]]


def _word(rank: int, letters: str) -> str:
    number, word = rank * 7919 + 17, ""
    while number:
        number, digit = divmod(number, len(letters))
        word += letters[digit]
    return word
