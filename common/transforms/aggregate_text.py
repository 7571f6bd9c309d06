"""Aggregate expressions as text: where a list of them splits, how each is named, which calls it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from common.core.errors import ParameterError, SqlError

# A comment, a string (raw, single or double quotes), a quoted name, a number, a word, or one other character.
_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)|(?P<text>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*")"""
    r"|(?P<name>`(?:[^`]|``)*`)|(?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\w*|\.\d+(?:[eE][+-]?\d+)?\w*)"
    r"|(?P<word>[^\W\d]\w*)|(?P<other>.)",
    re.DOTALL,
)
# Their value depends on which row comes first.
_UNSTEADY = frozenset({"first", "first_value", "last", "last_value", "any_value"})
CHANCE = frozenset(
    {"rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id",
     "spark_partition_id"}
)  # fmt: skip
_BEST_OF = frozenset({"max_by", "min_by"})
_UNORDERED = frozenset({"listagg", "string_agg"})
# Words before a bracket that are no function.
_SYNTAX = frozenset(
    {"and", "or", "not", "in", "case", "when", "then", "else", "between", "like", "is", "as", "cast", "if",
     "div", "array", "map", "interval", "try_cast", "exists", "rlike", "ilike", "any", "all", "decimal",
     "char", "varchar", "left", "right"}
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    """One aggregate call inside an expression.

    Attributes:
        function: Its name, in lower case.
        arguments: Text of each argument, without DISTINCT.
        is_distinct: DISTINCT stands before the arguments.
        order: Text after ORDER BY in WITHIN GROUP; empty without.
        condition: Text after WHERE in FILTER; empty without.
        text: The whole call.
        start: Where it begins in the expression.
    """

    function: str
    arguments: tuple[str, ...]
    is_distinct: bool
    order: str
    condition: str
    text: str
    start: int


@dataclass(frozen=True)
class Aggregate:
    """One expression of a list.

    Attributes:
        sql: The expression without its name.
        name: The name after AS, else the expression as it was typed.
        calls: The outermost aggregate calls in it.
        unknown: Functions that are none of Spark's, such as a Python aggregate that a session registered.
    """

    sql: str
    name: str
    calls: tuple[Call, ...]
    unknown: tuple[str, ...]

    def with_calls(self, texts: Sequence[str]) -> str:
        """The expression with another text for each call."""
        sql, end = "", 0
        for call, text in zip(self.calls, texts, strict=True):
            sql += self.sql[end : call.start] + text
            end = call.start + len(call.text)
        return sql + self.sql[end:]


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        """The word in lower case; the character itself; empty for all else."""
        return self.text.lower() if self.kind in ("word", "other") else ""


def split_aggregates(text: str) -> tuple[str, ...]:
    """Split at the commas that are outside brackets and quotes.

    Raises:
        SqlError: a bracket has no other half, or there is nothing between two commas.

    >>> split_aggregates("count(distinct a, b) as n, max(d), listagg(c, ',')")
    ('count(distinct a, b) as n', 'max(d)', "listagg(c, ',')")
    """
    parts = [part.strip() for part in _between_commas(text, _tokens(text))]
    if not all(parts):
        expected, got = "an expression on each side of a comma", "nothing"
        raise SqlError("SQL", text.strip() or "--aggregate", expected=expected, got=got)
    return tuple(parts)


def refuse_chance(what: str, text: str) -> None:
    """Refuse functions that give a row another value each time it is read.

    Raises:
        ParameterError: the text calls one.
    """
    for token, after in pairwise(_solid(text)):
        if token.word in CHANCE and after.word == "(":
            hint = "another run, or another partitioning, would give another answer"
            expected, got = "functions of the row's values", f"{token.word}()"
            raise ParameterError(what, text[:120], expected=expected, got=got, hint=hint)


def parse_aggregate(text: str, *, known: frozenset[str], functions: frozenset[str]) -> Aggregate:
    """The parts of one expression.

    Args:
        text: The expression, with or without a name.
        known: The aggregate functions.
        functions: All other functions of Spark.

    Raises:
        SqlError: it holds no aggregate, or a window.
        ParameterError: its value depends on the order of rows, or on chance.
    """
    refuse_chance("aggregate", text)
    tokens = _solid(text)
    for token, after in pairwise(tokens):
        if token.word == "over" and (after.word == "(" or after.kind in ("word", "name")):
            hint = (
                "topn --partition-by ranks and shares within groups; else aggregate, and join the groups back"
            )
            raise SqlError(
                "SQL", text[:120], expected="an aggregate of each group", got="a window (OVER)", hint=hint
            )
    tokens, name = _named(tokens)
    sql = text[: tokens[-1].start + len(tokens[-1].text)].strip() if tokens else text
    offset = len(text) - len(text.lstrip())
    calls, unknown = _calls(text, tokens, known, functions)
    if not calls and not unknown:
        hint = "count(*), sum(x), count(distinct x), percentile(x, 0.5), …"
        raise SqlError("SQL", text[:120], expected="an aggregate", got="none in it", hint=hint)
    moved = tuple(replace(call, start=call.start - offset) for call in calls)
    return Aggregate(sql, name or " ".join(sql.split()), moved, unknown)


def _tokens(text: str) -> list[_Token]:
    return [
        _Token(found.lastgroup or "other", found.group(), found.start()) for found in _TOKEN.finditer(text)
    ]


def _solid(text: str) -> list[_Token]:
    """All but blanks and comments."""
    return [token for token in _tokens(text) if token.kind != "blank"]


def _between_commas(text: str, tokens: Sequence[_Token]) -> Iterator[str]:
    depth, begin = 0, 0
    for token in tokens:
        depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "other" else 0
        if depth < 0:
            break
        if token.kind == "other" and token.text == "," and depth == 0:
            yield text[begin : token.start]
            begin = token.start + 1
    if depth:
        expected, got = "brackets in pairs", "one without its other half"
        raise SqlError("SQL", text[:120], expected=expected, got=got)
    yield text[begin:]


def _named(tokens: list[_Token]) -> tuple[list[_Token], str]:
    """The tokens before the name, and the name: after AS, or a lone word after a bracket."""
    if len(tokens) < 2 or tokens[-1].kind not in ("word", "name"):
        return tokens, ""
    last, before = tokens[-1], tokens[-2]
    name = last.text[1:-1].replace("``", "`") if last.kind == "name" else last.text
    if before.word == "as":
        return tokens[:-2], name
    if before.word == ")" and last.word not in ("end", "null"):
        return tokens[:-1], name
    return tokens, ""


def _calls(
    text: str, tokens: Sequence[_Token], known: frozenset[str], functions: frozenset[str]
) -> tuple[list[Call], tuple[str, ...]]:
    """The outermost aggregate calls, and the functions that nobody knows."""
    calls, unknown, at = [], [], 0
    while at < len(tokens) - 1:
        word, opens = tokens[at].word, tokens[at + 1].word == "("
        if opens and tokens[at].kind in ("word", "name"):
            is_part = at > 0 and tokens[at - 1].word == "."
            if word in known and not is_part:
                call, at = _call(text, tokens, at)
                calls.append(call)
                continue
            if is_part or (word not in functions and word not in _SYNTAX):
                unknown.append(tokens[at].text)
        if word == "select":
            unknown.append("a subquery")
        at += 1
    return calls, tuple(unknown)


def _call(text: str, tokens: Sequence[_Token], at: int) -> tuple[Call, int]:
    function, start = tokens[at].word, tokens[at].start
    inside, end = _bracket(text, tokens, at + 1)
    is_distinct = bool(inside) and inside[0].word == "distinct"
    if is_distinct or (inside and inside[0].word == "all" and len(inside) > 1):
        inside = inside[1:]
    arguments = _arguments(text, inside)
    order = condition = ""
    if [token.word for token in tokens[end : end + 3]] == ["within", "group", "("]:
        content, end = _bracket(text, tokens, end + 2)
        order = _text(text, content[2:])
    if [token.word for token in tokens[end : end + 2]] == ["filter", "("]:
        content, end = _bracket(text, tokens, end + 1)
        condition = _text(text, content[1:])
    last = tokens[end - 1]
    whole = text[start : last.start + len(last.text)]
    _refuse_unsteady(function, order, whole)
    if function in _BEST_OF and len(arguments) > 2:
        hint = "topn --partition-by keeps the best n of each group, and says what ties do"
        expected, got = f"{function} of a value and its order", "a number of values"
        raise ParameterError("aggregate", whole[:120], expected=expected, got=got, hint=hint)
    return Call(function, arguments, is_distinct, order, condition, whole, start), end


def _refuse_unsteady(function: str, order: str, text: str) -> None:
    if function in _UNSTEADY or (function in _UNORDERED and not order):
        steady = "WITHIN GROUP (ORDER BY …) settles it" if function in _UNORDERED else "min and max do not"
        hint = f"another run, or another partitioning, would give another answer; {steady}"
        expected = "aggregates whose value the group's rows decide, not their order"
        raise ParameterError("aggregate", text[:120], expected=expected, got=f"{function}()", hint=hint)


def _bracket(text: str, tokens: Sequence[_Token], at: int) -> tuple[list[_Token], int]:
    """The tokens inside the bracket that opens at `at`, and the place after it."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].word == "(") - (tokens[place].word == ")")
        if depth == 0:
            return list(tokens[at + 1 : place]), place + 1
    raise SqlError("SQL", text[:120], expected="brackets in pairs", got="one without its other half")


def _arguments(text: str, tokens: Sequence[_Token]) -> tuple[str, ...]:
    if not tokens:
        return ()
    whole = _text(text, tokens)
    return tuple(_text(part, _solid(part)) for part in _between_commas(whole, _tokens(whole)))


def _text(text: str, tokens: Sequence[_Token]) -> str:
    return text[tokens[0].start : tokens[-1].start + len(tokens[-1].text)] if tokens else ""
