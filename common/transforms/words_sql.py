"""Word counts by built-in functions only: the form that an accelerator can run."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from common.core.errors import StrategyError
from common.transforms.words_frame import COUNT, DOCUMENTS, TEXT, WORD, TextFrame, summed, text_frame
from common.transforms.words_java import CHARACTER, FINAL_SIGMA, RUN, unassigned_class, word_pattern
from common.transforms.words_rules import WordRules
from common.transforms.words_tokens import stops_of

_LINE_ENDS = "\r\n|\n|\r"
_SPELT = ("\u2019\u2010\u2011", "'--")
_BUILT_IN = ("unicode", "whitespace", "characters")


def why_not_sql(rules: WordRules) -> str | None:
    """What of the rules built-in functions cannot honour exactly, in one clause; None when they can."""
    if rules.tokenizer == "cjk":
        return "cjk needs jieba"
    if rules.pattern is not None:
        return "regex: takes a pattern of Python"
    if rules.tokenizer not in _BUILT_IN:
        return f"{rules.tokenizer} is a function of Python"
    if rules.normalize != "none":
        return f"normalize {rules.normalize} needs Python"
    return "case fold needs Python" if rules.case == "fold" else None


def sql_words(text: Column, rules: WordRules) -> Column:
    """The words of a text, n-grams within its lines: array<string>, NULL for NULL.

    Args:
        text: string, valid UTF-8.
        rules: Of which `why_not_sql` says None.
    """
    if rules.ngrams == 1:
        return _line_words(text, rules)
    lines = F.split(text, _LINE_ENDS, -1)
    return F.flatten(F.transform(lines, lambda line: _joined(_line_words(line, rules), rules.ngrams)))


def word_counts(
    df: DataFrame, column: str, rules: WordRules, *, by: str | None = None, documents: bool = False
) -> DataFrame:
    """Count the words of a text column.

    Args:
        df: Text rows; a row is one document. Its text is cut into lines at \\n, \\r\\n and \\r.
        column: Exact name of the string column. It must be valid UTF-8.
        rules: What a word is.
        by: Exact name of a column: counts per value of it.
        documents: Also in how many rows each word stands.

    Returns:
        `[by,] word: string, count: bigint [, documents: bigint]`. Row order is undefined.

    Raises:
        ColumnMissingError, ColumnTypeError, ParameterError: the columns do not fit.
        StrategyError: `why_not_sql(rules)` has something to say.

    Plan:
        Lazy. A row for each word, one shuffle of partial sums by the word as it stands in the text, a second
        and smaller one by the word in its final form; only the second with n-grams or documents. With
        documents the words of a row are sorted. Guidelines D5, D6.
    """
    why = why_not_sql(rules)
    if why is not None:
        expected, hint = "what built-in functions can do exactly", "use arrow, or auto"
        raise StrategyError("strategy", "sql", expected=expected, got=why, hint=hint)
    text = text_frame(df, column, by)
    if documents:
        counts = _with_documents(text, rules)
    elif rules.ngrams > 1:
        words = text.rows.select(*text.keys, F.explode(sql_words(F.col(TEXT), rules)).alias(WORD))
        counts = words.select(*text.keys, WORD, F.lit(1).alias(COUNT))
    else:
        counts = _cut_first(text, rules)
    return summed(counts, text, documents=documents)


def _cut_first(text: TextFrame, rules: WordRules) -> DataFrame:
    """The words as they stand in the text are summed, so that each is put in its final form once."""
    raw = text.rows.select(*text.keys, F.explode(_cut(F.col(TEXT), rules)).alias(WORD))
    sums = raw.groupBy(*text.keys, WORD).agg(F.count(F.lit(1)).alias(COUNT))
    words = sums.select(*text.keys, _final(rules)(F.col(WORD)).alias(WORD), COUNT)
    return words.where(_is_wanted(F.col(WORD), rules)) if _leaves_out(rules) else words


def _with_documents(text: TextFrame, rules: WordRules) -> DataFrame:
    """Sorted, the equal words of a row are neighbours, and the first of them stands for the row."""
    words = F.array_sort(sql_words(F.col(TEXT), rules)).alias("words")
    ordered = text.rows.select(*text.keys, words)
    marked = F.transform(
        "words",
        lambda word, at: F.struct(
            word.alias(WORD),
            F.when((at > 0) & (word == F.get("words", at - 1)), 0).otherwise(1).alias(DOCUMENTS),
        ),
    )
    one = ordered.select(*text.keys, F.explode(marked).alias("one"))
    return one.select(*text.keys, "one.word", F.lit(1).alias(COUNT), "one.documents")


def _line_words(line: Column, rules: WordRules) -> Column:
    return _wanted(F.transform(_cut(line, rules), _final(rules)), rules)


def _cut(text: Column, rules: WordRules) -> Column:
    """The words as they stand in a text: array<string>."""
    patterns = {"whitespace": RUN, "characters": CHARACTER}
    pattern = patterns.get(rules.tokenizer) or word_pattern()
    return F.regexp_extract_all(text, F.lit(pattern), F.lit(0))


def _final(rules: WordRules) -> Callable[[Column], Column]:
    """What gives a word its spelling and case."""

    def final(word: Column) -> Column:
        if rules.tokenizer == "unicode":
            word = F.translate(word, *_SPELT)
        return _lower(word, known=rules.tokenizer == "unicode") if rules.case == "lower" else word

    return final


def _lower(word: Column, *, known: bool) -> Column:
    """As common.transforms.words_case.lower; `known` when Unicode 13 knows each character."""
    final = F.regexp_replace(word, FINAL_SIGMA, "$1ς")
    sigma = F.when(F.contains(word, F.lit("Σ")), F.translate(final, "Σ", "\u03c3")).otherwise(word)
    if known:
        return F.lower(sigma)
    unknown = unassigned_class()
    # Not F.split, which compiles its pattern anew for each word.
    parts = F.regexp_extract_all(sigma, F.lit(f"{unknown}|(?s:(?!{unknown}).)++"), F.lit(0))
    kept = F.transform(parts, lambda part: F.when(part.rlike(unknown), part).otherwise(F.lower(part)))
    return F.when(sigma.rlike(unknown), F.array_join(kept, "")).otherwise(F.lower(sigma))


def _leaves_out(rules: WordRules) -> bool:
    return rules.min_length > 1 or bool(rules.stop_words)


def _wanted(words: Column, rules: WordRules) -> Column:
    return F.filter(words, lambda word: _is_wanted(word, rules)) if _leaves_out(rules) else words


def _is_wanted(word: Column, rules: WordRules) -> Column:
    """Long enough, and no stop word."""
    long = F.length(word) >= rules.min_length
    stops = stops_of(rules)
    return long & ~word.isin(sorted(stops)) if stops else long


def _joined(words: Column, size: int) -> Column:
    """Runs of so many words, as words."""
    starts = F.sequence(F.lit(1), F.size(words) - size + 1)
    runs = F.transform(starts, lambda start: F.array_join(F.slice(words, start, size), " "))
    return F.when(F.size(words) >= size, runs).otherwise(F.array().cast("array<string>"))
