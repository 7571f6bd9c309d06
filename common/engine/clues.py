"""What an engine error tells, as data: one clue per throwable of its chain, outermost first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

_LIMIT = 16
_CONDITION = re.compile(r"^\s*\[(?P<name>[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\]\s*")
_ABORTED = re.compile(
    r"^Job aborted due to stage failure: (?:.*?most recent failure: Lost task .*?\): (?:[\w.$]+: )?)?"
)
_STATE = re.compile(r"\s*SQLSTATE: (?P<state>[0-9A-Z]{5})")
_THROWN = re.compile(r"(?:^|[\s:])(?P<kind>(?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error))(?:: (?P<text>.*))?")
# Where the sentence ends and Spark's additions begin: the query, the logical plan, the stack.
_END = re.compile(
    r"\s*\n\s*(?:== |at [\w.$]+\(|'?[A-Z]\w* ?\[|[+:]- |JVM stacktrace:|Caused by: )"
    r"|;\s*\n|;? line \d+ pos \d+"
)
_POSITION = re.compile(r"line (?P<line>\d+),? (?P<unit>position|pos) (?P<at>\d+)")
_FRAGMENT = re.compile(r"== SQL[^\n]*==\n(?P<sql>[^\n]+)")


@dataclass(frozen=True)
class Clue:
    """One throwable of an error's chain.

    Attributes:
        kind: The simple name of its class: "NumberFormatException".
        text: Its message, whole.
        condition: Spark's name for what happened ("CAST_INVALID_INPUT"), or empty.
        parameters: The values that Spark put into the message; empty when only text is left.
    """

    kind: str
    text: str
    condition: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """The five characters of the SQL state, or empty."""
        found = _STATE.search(self.text)
        return found["state"] if found else ""

    @property
    def sentence(self) -> str:
        """The first sentence: no condition, no state, no query, no plan, no stack, on one line.

        >>> Clue("X", "[DIVIDE_BY_ZERO] Division by zero. Use it. SQLSTATE: 22012\\n== SQL ==\\n1/0").sentence
        'Division by zero'
        """
        text = _CONDITION.sub("", _ABORTED.sub("", self.text))
        text = _STATE.split(text, maxsplit=1)[0]
        found = _END.search(text)
        text = " ".join(text[: found.start() if found else None].split())
        return re.split(r"\.\s", text, maxsplit=1)[0].rstrip(".") or self.kind

    @property
    def phrase(self) -> str:
        """The first sentence, without its capital letter and without what the suite says anyway."""
        text = self.sentence.rpartition("due to data type mismatch: ")[2]
        proper = text.startswith(("Java", "Python", "Parquet", "Spark", "Kryo"))
        return text[0].lower() + text[1:] if text[1:2].islower() and not proper else text

    @property
    def advice(self) -> str | None:
        """The second sentence of the message, without a full stop; None when there is none."""
        text = _STATE.split(_CONDITION.sub("", self.text), maxsplit=1)[0]
        sentences = re.split(r"\.\s+", " ".join(text.split("\n==", maxsplit=1)[0].split()))
        second = sentences[1].strip(". ") if len(sentences) > 1 else ""
        return second or None

    def parameter(self, *names: str) -> str:
        """The first of these parameters that is there, without quotes and backticks; else empty."""
        found = (self.parameters[name] for name in names if self.parameters.get(name))
        return bare(next(found, ""))

    @property
    def position(self) -> str:
        """Where in the user's SQL, as "line 1, position 5" counted from 1, or empty."""
        found = _POSITION.search(self.text)
        if not found:
            return ""
        at = int(found["at"]) + (found["unit"] == "pos")  # Spark counts "pos" from 0 and "position" from 1
        return f"line {found['line']}, position {at}"

    @property
    def fragment(self) -> str:
        """The first line of the SQL that Spark shows, or empty."""
        found = _FRAGMENT.search(self.text)
        return found["sql"].strip() if found else ""


def bare(text: str) -> str:
    """A name without the quotes and backticks that Spark puts around it.

    >>> bare("`a`.`b`"), bare('"INT"')
    ('a.b', 'INT')
    """
    return text.replace("`", "").strip('"')


def place(address: str) -> str:
    """A file's address as the user knows it.

    >>> place("file:///data/a%20b.csv"), place("hdfs://host/a%20b.csv")
    ('/data/a b.csv', 'hdfs://host/a%20b.csv')
    """
    return unquote(re.sub(r"^file:/*", "/", address)) if address.startswith("file:") else address


def find_clues(error: BaseException) -> tuple[Clue, ...]:
    """All clues of `error`, its Java causes and its Python causes; works when the JVM is gone, too."""
    found: list[Clue] = []
    current: BaseException | None = error
    while current is not None and len(found) < _LIMIT:
        found += _java_clues(current) or [_python_clue(current)]
        current = current.__cause__
    # A task's failure may be left as text only; Connect sends text only.
    found += [inner for clue in tuple(found) for inner in _quoted(clue) if not _known(inner, found)]
    stack = str(_asked(error, "getStackTrace") or "")  # Connect's form of the causes
    found += [inner for inner in _quoted(Clue("", stack)) if not _known(inner, found)]
    return tuple(found)


def _python_clue(error: BaseException) -> Clue:
    text = _text(error)
    condition, parameters = "", {}
    if hasattr(error, "getCondition"):
        condition = str(_asked(error, "getCondition") or "")
        parameters = dict(_asked(error, "getMessageParameters") or {})
    return Clue(type(error).__name__, text, condition or _condition_in(text), parameters)


def _java_clues(error: BaseException) -> list[Clue]:
    throwable = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    clues: list[Clue] = []
    while throwable is not None and len(clues) < _LIMIT:
        described = _asked(throwable, "getClass")
        kind = str(_asked(described, "getName") or "") if described is not None else ""
        if not kind:
            return []  # the JVM is gone: only the Python text is left
        text = str(_asked(throwable, "getMessage") or "")
        condition, parameters = _condition_in(text), {}
        if kind.startswith("org.apache.spark."):
            condition = str(_asked(throwable, "getCondition") or condition)
            parameters = dict(_asked(throwable, "getMessageParameters") or {}) if condition else {}
        clues.append(Clue(_simple(kind), text, condition, parameters))
        throwable = _asked(throwable, "getCause")
    return clues


def _asked(subject: Any, method: str) -> Any:
    """What the method answers; None when the object has no such method or the JVM behind it is gone."""
    from py4j.protocol import Py4JError

    try:
        return getattr(subject, method)()
    except (Py4JError, OSError, AttributeError, AssertionError):
        return None


def _text(error: BaseException) -> str:
    from py4j.protocol import Py4JError

    try:
        return str(error)
    except (Py4JError, OSError, AttributeError, AssertionError):
        # The texts of Py4J and PySpark errors are fetched from the JVM, which is gone.
        return str(getattr(error, "_desc", "") or getattr(error, "errmsg", "") or type(error).__name__)


def _quoted(clue: Clue) -> Iterator[Clue]:
    for found in _THROWN.finditer(clue.text):
        text = (found["text"] or "").strip()
        yield Clue(_simple(found["kind"]), text, _condition_in(text))


def _known(clue: Clue, clues: list[Clue]) -> bool:
    return any(clue.kind == other.kind and clue.text[:80] == other.text.strip()[:80] for other in clues)


def _condition_in(text: str) -> str:
    found = _CONDITION.match(text)
    return found["name"] if found else ""


def _simple(class_name: str) -> str:
    return re.split(r"[.$]", class_name)[-1]


def from_engine(error: BaseException) -> bool:
    """True when Spark, its gateway or its Connect client raised the error, or was talking when it came."""
    if type(error).__module__.split(".")[0] in {"pyspark", "py4j", "grpc"}:
        return True
    return isinstance(error, (ConnectionError, EOFError)) and _passed_gateway(error)


def _passed_gateway(error: BaseException) -> bool:
    frame = error.__traceback__
    while frame is not None:
        if str(frame.tb_frame.f_globals.get("__name__", "")).startswith(("py4j.", "pyspark.")):
            return True
        frame = frame.tb_next
    return False
