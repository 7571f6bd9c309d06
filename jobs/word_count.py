"""How often each word stands in files of text or in a text column, in every language."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # makes `common` importable from a clone

from cyclopts import Parameter
from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from common.core.errors import ColumnMissingError, JobError, SuiteError, UsageError
from common.engine.counters import Counters
from common.engine.small_texts import small_text
from common.engine.text_counts import count_ranges
from common.engine.text_encodings import encoding_of, is_splittable, is_utf8
from common.engine.text_modules import look_here, module_of
from common.engine.word_rows import Strategy as RowStrategy
from common.engine.word_rows import TextRows, count_rows
from common.runs import (
    Counted,
    Decision,
    Display,
    Facts,
    Flag,
    Inputs,
    Job,
    JobSettings,
    ReadInputs,
    run_job,
)
from common.settings.inputs import InputRequest
from common.transforms.columns import match, resolve
from common.transforms.word_answer import (
    COUNT,
    DOCUMENTS,
    RANK,
    UNDECODABLE,
    WORD,
    WordAnswer,
    word_answer,
)
from common.transforms.words_han import never_found
from common.transforms.words_rules import Case, Normalize, OnDecodeError, WordRules, check, stop_words
from common.transforms.words_sql import why_not_sql
from common.tuning.words import Strategy, WordQuestion, plan_words

FILE = "file"
_WHOLE_FILES_BYTES = 2**62
_LOG = logging.getLogger("saltpan.run")


class Settings(JobSettings):
    """The flags of word-count."""

    column: str | None = None
    """Column of text; each row is a document. Without it the input is files of plain text."""
    recursive: Flag = False
    """Also read plain sub-folders."""
    tokenizer: str = "unicode"
    """What a word is: unicode, whitespace, cjk, characters, regex:PATTERN or module:function."""
    normalize: Normalize = "none"
    """Unicode normalisation of the text first."""
    case: Case = "lower"
    """What happens to capital letters: fold also makes "ß" and "ss" one."""
    stop_words: str = "none"
    """Words to leave out: none, en, zh, or a file of them."""
    min_length: int = Field(default=1, ge=1)
    """Leave out words of fewer characters."""
    ngrams: int = Field(default=1, ge=1, le=100)
    """Count runs of so many words of one line."""
    min_count: int = Field(default=1, ge=1)
    """Leave out words that are rarer."""
    top: int | None = Field(default=None, ge=1, le=2_000_000_000)
    """Only so many of the most frequent words, with their rank."""
    document_frequency: Flag = False
    """Also count the documents with the word: files, or rows with --column."""
    by: str | None = None
    """Count apart for each value of this column; `file` counts each file apart."""
    encoding: str = "utf-8"
    """How the files are encoded."""
    on_decode_error: OnDecodeError = "fail"
    """Bytes that are no text: stop, or put U+FFFD there and say how often."""
    user_dictionary: str | None = None
    """Dictionary of more words for the tokenizer cjk, in jieba's format."""
    split_bytes: Annotated[int | None, Parameter(show_default=False)] = Field(default=None, ge=1)
    """About how much of the files a task reads; by default as the plan says."""
    strategy: Strategy = "auto"
    """How; auto chooses and says why."""

    def problems(self) -> Iterable[SuiteError]:
        """What cannot be together, and what names nothing."""
        for check_one in (self._check_encoding, self._check_input, self._check_rules, lambda: _asked(self)):
            try:
                check_one()
            except SuiteError as error:
                yield error

    def reading(self, request: InputRequest) -> InputRequest:
        """Without --column all files are text, whatever their endings."""
        folders = replace(request, sub_folders="read" if self.recursive else "skip")
        if self.column is not None:
            return folders if self.recursive else request
        return replace(folders, format="text", encoding=self.encoding)

    def _check_encoding(self) -> None:
        encoding_of(self.encoding)
        if self.column is not None and not is_utf8(self.encoding):
            got, hint = "--column beside it", "the text of a column is decoded already"
            raise UsageError("flag", "--encoding", expected="files of text", got=got, hint=hint)

    def _check_input(self) -> None:
        kind = getattr(self, "input_format", "auto")
        tables = [path for path in getattr(self, "input", ()) if path.startswith("table:")]
        if self.column is None and (tables or kind not in ("auto", "text")):
            got = f"none, and {tables[0] if tables else f'--input-format {kind}'}"
            raise UsageError("flag", "--column", expected="the column that holds the text", got=got)
        options = [option.partition("=")[0] for option in getattr(self, "input_option", ())]
        other = [f"--input-option {name}" for name in options if name.lower() != "basepath"]
        other += ["--input-schema"] if getattr(self, "input_schema", None) else []
        if self.column is None and other:
            raise UsageError("flag", other[0], expected="--column beside it", got="files of plain text")

    def _check_rules(self) -> None:
        if self.user_dictionary is not None and self.tokenizer != "cjk":
            got = f"--tokenizer {self.tokenizer}"
            raise UsageError("flag", "--user-dictionary", expected="--tokenizer cjk beside it", got=got)
        look_here(self.tokenizer)
        check(_rules(self))


class WordCount(Job[Settings]):
    """How often each word stands in files of text or in a text column, in every language."""

    settings = Settings

    def plan(self, facts: Facts, settings: Settings) -> Decision:
        """The workers read and count where they can open the files; else Spark reads for them."""
        question = WordQuestion(
            column=settings.column,
            encoding=encoding_of(settings.encoding),
            is_splittable=is_splittable(settings.encoding),
            why_not_sql=why_not_sql(_rules(settings)),
            split_bytes=settings.split_bytes,
            ngrams=settings.ngrams,
            is_own=module_of(settings.tokenizer) is not None,
        )
        return plan_words(settings.strategy, question, facts)

    def build(self, inputs: Inputs, settings: Settings, decision: Decision) -> DataFrame | Counted:
        """The answer by the chosen strategy."""
        _say_never_found(settings)
        if decision.evidence["read"] == "ranges":
            known = decision.evidence
            counts = _counts_of_ranges(
                inputs, settings, split_bytes=known["split_bytes"], buckets=known.get("buckets")
            )
        else:
            strategies: dict[str, RowStrategy] = {"arrow": "arrow", "sql": "sql", "rdd": "rdd"}
            counts = _counts_of_rows(inputs, settings, strategies[decision.choice])
        asked = _resolved(counts, settings)
        if settings.on_decode_error == "fail":
            return word_answer(counts, asked)
        counters = Counters(UNDECODABLE)
        return Counted(word_answer(counts, asked, attach=counters.attach), counters)

    def plain(self, inputs: Inputs, settings: Settings) -> DataFrame:
        """By built-in functions where they can, else row by row in Python; files Spark cannot read, whole."""
        if settings.column is None and not is_utf8(settings.encoding):
            counts = _counts_of_ranges(inputs, settings, split_bytes=_WHOLE_FILES_BYTES)
        else:
            able = why_not_sql(_rules(settings)) is None
            counts = _counts_of_rows(inputs, settings, "sql" if able else "arrow")
        return word_answer(counts, _resolved(counts, settings))

    def display(self, settings: Settings, columns: Sequence[str]) -> Display:
        """The most frequent first."""
        by = tuple(columns[: 0 if settings.by is None else 1])
        measures = tuple(name for name in (COUNT, DOCUMENTS) if name in columns)
        if RANK in columns:
            return Display((*by, RANK), measures)
        return Display((*by, COUNT, WORD), measures, descending=(COUNT,))


def _rules(settings: Settings) -> WordRules:
    """What a word is, with the content of the files that flags name."""
    rules = WordRules(
        settings.tokenizer,
        settings.normalize,
        settings.case,
        min_length=settings.min_length,
        ngrams=settings.ngrams,
    )
    if settings.user_dictionary is not None:
        rules = replace(rules, user_dictionary=small_text(settings.user_dictionary, flag="--user-dictionary"))
    if settings.stop_words == "none":
        return rules
    if settings.stop_words in ("en", "zh"):
        return replace(rules, stop_words=stop_words(settings.stop_words))
    text = small_text(settings.stop_words, flag="--stop-words", others="none, en, zh or ")
    return replace(rules, stop_words=frozenset(text.split()))


def _say_never_found(settings: Settings) -> None:
    if never := never_found(_rules(settings).user_dictionary or ""):
        said = "%s: %d of its words are never found, since jieba cuts Chinese characters only: %s"
        _LOG.warning(said, settings.user_dictionary, len(never), ", ".join(never[:5]))


def _asked(settings: Settings) -> WordAnswer:
    files = settings.document_frequency and settings.column is None
    return WordAnswer(
        by=settings.by,
        in_files=FILE if files else None,
        documents=settings.document_frequency,
        min_count=settings.min_count,
        top=settings.top,
    )


def _resolved(counts: DataFrame, settings: Settings) -> WordAnswer:
    """The same with the real name of the column."""
    asked = _asked(settings)
    real = match(asked.by, available=counts.columns) if asked.by is not None else None
    return replace(asked, by=real)


def _read(inputs: Inputs) -> ReadInputs:
    if isinstance(inputs, ReadInputs):
        return inputs
    expected, got = "inputs of run_job, whose files can be read in parts", type(inputs).__name__
    raise JobError("job", "word-count", expected=expected, got=got)


def _group(settings: Settings, available: Sequence[str]) -> str | None:
    """The partition column to count by, if it is one."""
    if settings.by is None or settings.by.lower() == FILE:
        return None
    found = match(settings.by, available=available)
    if found is None:
        raise ColumnMissingError.among([settings.by], [FILE, *available], where="the input, or `file`")
    return found


def _by_file(settings: Settings) -> bool:
    return settings.document_frequency or (settings.by or "").lower() == FILE


def _counts_of_ranges(
    inputs: Inputs, settings: Settings, *, split_bytes: int, buckets: int | None = None
) -> DataFrame:
    read = _read(inputs)
    group = _group(settings, read.partition_columns("input"))
    return count_ranges(
        read.ranges("input", split_bytes=split_bytes, group=group),
        _rules(settings),
        file_column=FILE if _by_file(settings) else None,
        buckets=buckets,
        on_decode_error=settings.on_decode_error,
    )


def _counts_of_rows(inputs: Inputs, settings: Settings, strategy: RowStrategy) -> DataFrame:
    text = _lines(inputs, settings) if settings.column is None else _column(inputs, settings)
    return count_rows(text, _rules(settings), strategy=strategy, on_decode_error=settings.on_decode_error)


def _lines(inputs: Inputs, settings: Settings) -> TextRows:
    """The lines of the files; a document is a file, and so a column to count by."""
    lines = _read(inputs).lines("input", file_column=FILE)
    text, _, *partitions = lines.columns
    group = _group(settings, partitions)
    keys = (*([FILE] if _by_file(settings) else []), *([group] if group else []))
    return TextRows(lines, text, keys, documents=False, place=F.col(FILE))


def _column(inputs: Inputs, settings: Settings) -> TextRows:
    """A column of a table; a document is a row."""
    rows = inputs["input"]
    names = [name for name in (settings.column, settings.by) if name is not None]
    column, *keys = resolve(names, available=rows.columns, where="the input")
    return TextRows(
        rows, column, tuple(keys), documents=settings.document_frequency, place=F.lit(f"column {column}")
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; the exit code is returned."""
    return run_job(WordCount(), argv)


if __name__ == "__main__":
    raise SystemExit(main())
