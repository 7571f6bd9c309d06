"""Words with the row that each stands in: for n-grams, counts by group, and document frequency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from common.transforms.words_chunks import chunk_lists, words_of_chunks
from common.transforms.words_rules import NAMED_TOKENIZERS, WordRules
from common.transforms.words_tokens import normalizer_of, words_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]


class Occurrences(NamedTuple):
    """Each word of each row, in the order of the text."""

    words: pa.Array[Any]  # string: the distinct words, some perhaps without an occurrence
    rows: Integers  # where each occurrence stands, ascending
    ids: Integers  # which of `words` it is


class RowCounts(NamedTuple):
    """Counts of words by group, one entry per group and word."""

    groups: Integers
    words: pa.Array[Any]
    counts: Integers
    documents: Integers


def occurrences(texts: pa.Array[Any], rules: WordRules) -> Occurrences:
    """The words of texts of one or more lines each, n-grams within a line.

    Args:
        texts: string or large_string, valid UTF-8, without NULL.
        rules: What a word is.
    """
    import numpy as np
    import pyarrow as pa

    normal = normalizer_of(rules)
    named = rules.tokenizer in NAMED_TOKENIZERS
    if named and rules.ngrams == 1:
        lines, rows = texts, np.arange(len(texts))
    else:
        lines, rows = _lines(texts)
    if rules.normalize != "none":
        before: list[Any] = lines.to_pylist()
        lines = pa.array([normal(line) for line in before], pa.large_string())
    found = _by_chunks(lines, rules) if named else _by_lines(lines, rules)
    if rules.ngrams > 1:
        found = _joined(found, rules.ngrams)
    return found._replace(rows=rows[found.rows])


def _lines(texts: pa.Array[Any]) -> tuple[pa.Array[Any], Integers]:
    """The lines of all texts, and which text each is of."""
    import numpy as np
    import pyarrow.compute as pc

    if not pc.any(pc.match_substring_regex(texts, "[\r\n]")).as_py():
        return texts, np.arange(len(texts))
    lines = pc.split_pattern(pc.replace_substring_regex(texts, "\r\n?", "\n"), "\n")
    return lines.flatten(), pc.list_parent_indices(lines).to_numpy()


def _by_chunks(lines: pa.Array[Any], rules: WordRules) -> Occurrences:
    """Each chunk is replaced by its words, of which the rule has been asked once."""
    import numpy as np
    import pyarrow.compute as pc

    chunks: Any = chunk_lists(lines, rules)
    distinct = chunks.flatten().dictionary_encode()
    found = words_of_chunks(distinct.dictionary, rules)
    words = found.words.dictionary_encode()
    in_order = np.argsort(found.owners.to_numpy(), kind="stable")
    ids = words.indices.to_numpy()[in_order].astype(np.int64)
    sizes = np.bincount(found.owners.to_numpy().astype(np.int64), minlength=len(distinct.dictionary))
    starts = np.cumsum(sizes) - sizes
    at = distinct.indices.to_numpy()
    times = sizes[at]
    before = np.cumsum(times) - times
    place = np.arange(times.sum()) + np.repeat(starts[at] - before, times)
    rows = pc.list_parent_indices(chunks).to_numpy().astype(np.int64)
    return Occurrences(words.dictionary, np.repeat(rows, times), ids[place])


def _by_lines(lines: pa.Array[Any], rules: WordRules) -> Occurrences:
    """Each line goes through the Python rule."""
    import numpy as np
    import pyarrow as pa

    rule = words_of(rules)
    number: dict[str, int] = {}
    rows: list[int] = []
    ids: list[int] = []
    texts: list[Any] = lines.to_pylist()
    for row, line in enumerate(texts):
        found = rule(line)
        ids += [number.setdefault(word, len(number)) for word in found]
        rows += [row] * len(found)
    return Occurrences(pa.array(list(number), pa.string()), np.array(rows, np.int64), np.array(ids, np.int64))


def _joined(found: Occurrences, size: int) -> Occurrences:
    """Runs of `size` words of one row, as words."""
    import numpy as np
    import pyarrow.compute as pc

    total = max(len(found.ids) - size + 1, 0)
    starts = np.flatnonzero(found.rows[:total] == found.rows[size - 1 : size - 1 + total])
    runs = found.ids[starts]
    for step in range(1, size):  # numbered anew at each step, so that no product overflows
        runs = np.unique(runs, return_inverse=True)[1] * len(found.words) + found.ids[starts + step]
    _, first, ids = np.unique(runs, return_index=True, return_inverse=True)
    parts: list[Any] = [found.words.take(found.ids[starts[first] + step]) for step in range(size)]
    return Occurrences(pc.binary_join_element_wise(*parts, " "), found.rows[starts], ids)


def counts_by_group(found: Occurrences, groups: Integers) -> RowCounts:
    """How often, and in how many rows, each word stands in each group of rows.

    Args:
        found: The words of all rows.
        groups: The group of each row, >= 0.
    """
    import numpy as np

    width = max(len(found.words), 1)
    keys, counts = np.unique(groups[found.rows] * width + found.ids, return_counts=True)
    once = np.unique(found.rows * width + found.ids)
    in_rows = groups[once // width] * width + once % width
    _, documents = np.unique(in_rows, return_counts=True)
    return RowCounts(keys // width, found.words.take(keys % width), counts, documents)
