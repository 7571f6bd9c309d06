"""Which strategy a word count takes, from facts that cost nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from common.core.errors import StrategyError, UsageError
from common.core.units import format_bytes
from common.tuning.decision import Decision
from common.tuning.facts import Facts, InputFacts

Strategy = Literal["auto", "arrow", "sql", "rdd"]
Read = Literal["ranges", "rows"]

# A task sums its words before it sends them on, so few large ones send least: with one for each core a text
# of 370 MB took 0.76 to 0.97 of the time that it took with two. Beyond the bounds the start of a task counts,
# or what a retry repeats.
_TASKS_PER_CORE = 1
_LEAST_BYTES, _MOST_BYTES = 8 * 1024**2, 256 * 1024**2
# Who merges a bucket of words holds it whole: not more than so much text can have distinct words in it. More
# buckets than that make messages of a few words each.
_BUCKET_BYTES, _MOST_BUCKETS = 8 * 1024**2, 1024
_SHOWN_FILES = 3
# Each range is a Python object of the driver's, and each task some milliseconds of its time.
_MOST_TASKS = 100_000


@dataclass(frozen=True)
class WordQuestion:
    """What a word count asks, as far as a planner needs to know.

    Attributes:
        column: The text column of a table; None for files of plain text.
        encoding: Of the files.
        is_splittable: Files of the encoding can be read in parts.
        why_not_sql: What built-in functions cannot honour exactly; None when they can all.
        split_bytes: What a task shall read; None leaves it to the planner.
        ngrams: Words that are counted as one, each of which is in as many.
        is_own: A function of the user's own cuts, and may give more words than the text holds.
    """

    column: str | None = None
    encoding: str = "utf-8"
    is_splittable: bool = True
    why_not_sql: str | None = None
    split_bytes: int | None = None
    ngrams: int = 1
    is_own: bool = False


def plan_words(strategy: Strategy, question: WordQuestion, facts: Facts, *, name: str = "input") -> Decision:
    """Choose how words are counted, and who reads the text.

    Args:
        strategy: "auto", or the choice that the user forces.
        question: What is asked.
        facts: What is known about the input and the engine.
        name: The input's name among the facts.

    Returns:
        The choice `arrow`, `sql` or `rdd`. Evidence: `read` ("ranges": the workers read the files; "rows":
        Spark does), `split_bytes`, `buckets` (of words, whose counts workers merge; none where Spark sums
        all rows), and the numbers.

    Raises:
        StrategyError: the forced strategy, or the encoding, cannot give the right answer.
        UsageError: the text would be cut into too many parts, or is not cut at all.
    """
    known = facts.inputs[name]
    choice = "arrow" if strategy == "auto" else strategy
    against_ranges = _why_not_ranges(question, facts, known)
    read: Read = "rows" if choice != "arrow" or against_ranges else "ranges"
    _refuse_wrong(choice, read, question, facts, against_ranges)
    if question.split_bytes is not None:
        _check_parts(question.split_bytes, read, choice, known, against_ranges)
    split_bytes = question.split_bytes or _split_bytes(known, facts)
    reason = _reason(choice, read, question, known, split_bytes=split_bytes, why=against_ranges)
    forced = strategy != "auto"
    return Decision(
        choice,
        f"as asked; {reason}" if forced else reason,
        () if forced else _rejected(question),
        _evidence(known, facts, question, read=read, split_bytes=split_bytes),
        ("D5", "D6") if choice == "arrow" else ("D5",),
        forced=forced,
    )


def _why_not_ranges(question: WordQuestion, facts: Facts, known: InputFacts) -> str | None:
    """Why workers do not read the text by themselves; None when they do."""
    if question.column is not None:
        return f"the text is in column {question.column}"
    if not known.is_reachable:
        return "only Spark can open the files"
    return None if "rdd" in facts.capabilities else "the workers may be on another machine"


def _refuse_wrong(
    choice: str, read: Read, question: WordQuestion, facts: Facts, against_ranges: str | None
) -> None:
    """A strategy that could not give the right answer is an error, never a silent other one."""
    if choice == "sql" and question.why_not_sql is not None:
        raise StrategyError(
            "strategy", choice, expected="what built-in functions can do exactly", got=question.why_not_sql,
            hint="use arrow, or auto",
        )  # fmt: skip
    if choice == "rdd" and "rdd" not in facts.capabilities:
        expected, got = "classic Spark, which has RDDs", "an engine without"
        raise StrategyError("strategy", choice, expected=expected, got=got, hint="use arrow, or auto")
    if read == "rows" and question.encoding != "utf-8":
        got = f"{question.encoding}, and {against_ranges}" if against_ranges else question.encoding
        hint = "convert the text to UTF-8" if against_ranges else "use arrow, or auto"
        expected = "text in utf-8, which is what Spark reads"
        raise StrategyError("strategy", choice, expected=expected, got=got, hint=hint)


def _check_parts(
    split_bytes: int, read: Read, choice: str, known: InputFacts, against_ranges: str | None
) -> None:
    if read == "rows":
        expected, got = "files that the workers read by themselves", against_ranges or f"--strategy {choice}"
        raise UsageError("flag", "--split-bytes", expected=expected, got=got)
    size_bytes = known.size_bytes or 0
    least = -(-size_bytes // _MOST_TASKS)
    if split_bytes < least:
        expected = f"{least:,} or more for {format_bytes(size_bytes)}, since each part is a task"
        raise UsageError("flag", "--split-bytes", expected=expected, got=f"{split_bytes:,}")


def _split_bytes(known: InputFacts, facts: Facts) -> int:
    tasks = _TASKS_PER_CORE * max(1, facts.core_count)
    return min(_MOST_BYTES, max(_LEAST_BYTES, -(-(known.size_bytes or 0) // tasks)))


def _buckets(known: InputFacts, question: WordQuestion) -> int | None:
    """How many buckets keep what one holds small; None where that is not known, or not possible."""
    if known.packed_files or question.is_own:
        return None
    count = max(1, -(-(known.size_bytes or 0) * question.ngrams // _BUCKET_BYTES))
    return None if count > _MOST_BUCKETS else count


def _reason(
    choice: str,
    read: Read,
    question: WordQuestion,
    known: InputFacts,
    *,
    split_bytes: int,
    why: str | None,
) -> str:
    if choice == "rdd":
        return "every word is a Python object, summed by reduceByKey: the textbook form, the slowest"
    if choice == "sql":
        return "built-in functions cut the rows into words, which Spark sums"
    counted = "the workers cut and count words in Arrow, only (word, count) goes to the JVM"
    if read == "rows":
        return f"{counted}; Spark reads the rows for them: {why}"
    size, files = format_bytes(known.size_bytes or 0), _files(known.file_count or 0)
    parts = f"they read {size} of {files} by themselves, about {format_bytes(split_bytes)} a task"
    return "; ".join([counted, parts, *_whole(question, known)])


def _whole(question: WordQuestion, known: InputFacts) -> list[str]:
    """What cannot be read in parts, and so keeps one task busy for long."""
    if not question.is_splittable:
        return [f"{question.encoding} cannot be read from the middle: one task for each file"]
    packed = known.packed_files
    if not packed:
        return []
    shown = ", ".join(path.rsplit("/", 1)[-1] for path in packed[:_SHOWN_FILES])
    more = f" and {len(packed) - _SHOWN_FILES:,} more" if len(packed) > _SHOWN_FILES else ""
    return [f"one task for each packed file, which cannot be split ({shown}{more})"]


def _rejected(question: WordQuestion) -> tuple[tuple[str, str], ...]:
    sql = question.why_not_sql or "the JVM would make a row of every word"
    return (("sql", sql), ("rdd", "a Python object for every word"))


def _evidence(
    known: InputFacts, facts: Facts, question: WordQuestion, *, read: Read, split_bytes: int
) -> dict[str, Any]:
    evidence = {
        "read": read,
        "files": known.file_count,
        "size_bytes": known.size_bytes,
        "cores": facts.core_count or None,
        "split_bytes": split_bytes if read == "ranges" else None,
        "buckets": _buckets(known, question) if read == "ranges" else None,
        "packed_files": len(known.packed_files) or None,
    }
    return {name: value for name, value in evidence.items() if value is not None}


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"
