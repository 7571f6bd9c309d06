"""Words by way of chunks: split at ASCII bytes in Arrow, apply the rule to each distinct chunk only.

A chunk is a run without any of the rules' ASCII separators. UTF-8 never has an ASCII byte inside a character,
so this is exact for all text, and no rule with a name finds a word across a separator. Splitting and counting
chunks is vectorised; most distinct chunks are plain words, which is vectorised too; the Python rule sees the
rest.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from common.transforms.words_rules import WordRules
from common.transforms.words_tokens import stops_of, words_of
from common.transforms.words_unicode import FORMAT, WORD, hex_class, ranges

if TYPE_CHECKING:
    import pyarrow as pa

# Their lower case is not one code point, or depends on what stands beside them.
_SPECIAL_CASE = (0x130, 0x3A3)


class ChunkWords(NamedTuple):
    """The words of chunks, one row each."""

    words: pa.Array[Any]  # string
    owners: pa.Array[Any]  # int: the chunk's place


def chunk_lists(texts: pa.Array[Any], rules: WordRules) -> pa.Array[Any]:
    """The chunks of each text: list<string>, in their order.

    Args:
        texts: string or large_string, valid UTF-8, without NULL.
        rules: Whose `cuts_normal_lines` is true.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.concat_arrays([texts])  # of an offset, or of none: bytes.translate sees all of the buffer
    _, offsets, data = texts.buffers()
    content = b"" if data is None else data.to_pybytes().translate(spacing(rules))
    from_buffers: Any = type(texts).from_buffers
    spaced: pa.StringArray = from_buffers(len(texts), offsets, pa.py_buffer(content))
    return pc.ascii_split_whitespace(spaced)


@lru_cache(maxsize=8)
def spacing(rules: WordRules) -> bytes:
    """What bytes.translate makes of each byte: a space of separators, a small letter of a capital one."""
    table = bytearray(range(256))
    for separator in rules.separators:
        table[separator] = ord(" ")
    if rules.case != "keep":
        table[ord("A") : ord("Z") + 1] = range(ord("a"), ord("z") + 1)
    return bytes(table)


def words_of_chunks(chunks: pa.Array[Any], rules: WordRules) -> ChunkWords:
    """The words of distinct chunks, by the rule; those of one chunk in their order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    chunks = chunks.cast(pa.string())
    plain = pc.match_substring_regex(chunks, _plain_pattern(rules))
    easy = _plain_words(chunks.filter(plain), pc.indices_nonzero(plain), rules)
    hard = pc.indices_nonzero(pc.invert(plain))
    others = chunks.take(hard)
    found = _by_parts(others, rules) if _cuts_at_any_separator(rules) else _by_rule(others, rules)
    return _together([easy, ChunkWords(found.words, hard.take(found.owners))])


def _cuts_at_any_separator(rules: WordRules) -> bool:
    return rules.tokenizer in {"unicode", "cjk"}


def _by_parts(chunks: pa.Array[Any], rules: WordRules) -> ChunkWords:
    """Also cut where other characters than ASCII's part: Chinese commas, quotation marks, wide spaces."""
    import numpy as np
    import pyarrow.compute as pc

    lists: Any = pc.split_pattern_regex(cast("pa.StringArray", chunks), _separator_pattern())
    parts, parents = lists.flatten(), pc.list_parent_indices(lists)
    plain = pc.match_substring_regex(parts, _plain_pattern(rules))
    hard = pc.indices_nonzero(pc.invert(plain))
    by_rule = _by_rule(parts.take(hard), rules)
    found = _together(
        [
            _plain_words(parts.filter(plain), pc.indices_nonzero(plain), rules),
            ChunkWords(by_rule.words, hard.take(by_rule.owners)),
        ]
    )
    in_order = np.argsort(found.owners.to_numpy(), kind="stable")
    return ChunkWords(found.words.take(in_order), parents.take(found.owners.take(in_order)))


def _by_rule(texts: pa.Array[Any], rules: WordRules) -> ChunkWords:
    """What the Python rule finds, asked once for each distinct text."""
    import numpy as np
    import pyarrow as pa

    encoded: Any = texts.dictionary_encode()
    rule = words_of(rules)
    found = [rule(text) for text in encoded.dictionary.to_pylist()]
    places = encoded.indices.to_numpy()
    sizes = np.array([len(one) for one in found], np.int64)[places]
    words = [word for at in places.tolist() for word in found[at]]
    return ChunkWords(pa.array(words, pa.string()), pa.array(np.repeat(np.arange(len(places)), sizes)))


def _together(parts: list[ChunkWords]) -> ChunkWords:
    import pyarrow as pa

    return ChunkWords(
        pa.concat_arrays([part.words for part in parts]),
        pa.concat_arrays([part.owners for part in parts]),
    )


def _plain_words(words: pa.Array[Any], owners: pa.Array[Any], rules: WordRules) -> ChunkWords:
    """Chunks that are one word each: only case, stop words and length are left to do."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if rules.case == "lower":
        words = pc.utf8_lower(words)
    keep = None
    if stops := stops_of(rules):
        keep = pc.invert(pc.is_in(words, value_set=pa.array(sorted(stops), pa.string())))
    if rules.min_length > 1:
        lengths: Any = pc.utf8_length(cast("pa.StringArray", words))
        long = pc.greater_equal(lengths, pa.scalar(rules.min_length))
        keep = long if keep is None else pc.and_(keep, long)
    return ChunkWords(words, owners) if keep is None else ChunkWords(words.filter(keep), owners.filter(keep))


@cache
def _separator_pattern() -> str:
    """RE2: characters that no word of the unicode rule holds."""
    joiners = r"'\x{2019}\x{2010}\x{2011}-"
    return f"[^{hex_class(WORD, FORMAT)}{joiners}]+"


@cache
def _word_characters() -> str:
    """The inside of an RE2 class: word characters whose lower case depends on nothing."""
    parts = []
    for first, last in ranges(WORD):
        start = first
        for special in _SPECIAL_CASE:
            if first <= special <= last:
                parts.append((start, special - 1))
                start = special + 1
        parts.append((start, last))
    return "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in parts if first <= last)


@lru_cache(maxsize=8)
def _plain_pattern(rules: WordRules) -> str:
    """RE2: chunks that are one word as they stand, but for its case."""
    if rules.tokenizer == "characters":
        return "^[!-~]$"
    if rules.tokenizer == "whitespace":
        other = "" if rules.case == "fold" else _word_characters()
        return f"^[!-~{other}]+$"
    ascii_only = rules.case == "fold" or rules.tokenizer == "cjk"
    letters = "0-9A-Za-z" if ascii_only else _word_characters()
    return f"^[{letters}]+(?:['-][{letters}]+)*$"
