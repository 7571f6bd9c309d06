"""Where Comet would answer otherwise than Spark, seen in a plan or in a file's footer before it runs.

What a setting can switch off is switched off in conf/comet.conf; what is left is found here, and the query
then runs on plain Spark. Each rule has a test in tests/e2e/test_comet.py that shows the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from common.engine.plans import Plan, PlanNode

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_FRAME = re.compile(r"specifiedwindowframe\((?P<kind>\w+), (?P<lower>[^,]+), ")
_SUMS = re.compile(r"\b(?:try_)?(?:sum|avg|mean)\(")
_NAMED_BOUNDS = ("unboundedpreceding$()", "currentrow$()", "unboundedfollowing$()")
_SLIDING = "a sum or an average over a sliding frame, which keeps NaN and rounding of rows that have left it"
_RANGE = "a RANGE frame with an offset, whose overflow it does not report"
_BY_PLACE = re.compile(r"\b(rand|randn|monotonically_increasing_id|spark_partition_id|uuid)\(")
_ATTRIBUTE = re.compile(r"^.*#(?P<id>\d+)(?P<bigint>L?)$")
_CUT = re.compile(r"\.\.\. \d+ more fields")

# Types whose text or decimal value has one form everywhere.
_NUMBERS = ("bigint", "int", "smallint", "tinyint", "boolean", "decimal")
_EXACT = frozenset((*_NUMBERS, "date", "timestamp", "timestamp_ntz", "string", "varchar", "char"))
_CALENDAR = re.compile(r"\b(date|timestamp|timestamp_ntz)\b")


def unsafe_for_comet(plan: Plan, *, footers_are_known: bool = True) -> list[str]:
    """Why this query would get another answer from Comet than from Spark; empty when it would not.

    Args:
        plan: What Spark plans, best without Comet: its own nodes cut long lists.
        footers_are_known: `unsafe_footers` was asked about the files that are read.
    """
    types = dict(_scanned_types(plan))
    reasons = [
        reason
        for node in plan.nodes
        for reason in (*_frames(node), *_casts(node, types), *_places(node), *_unseen(node))
    ]
    reasons += _calendars(plan, footers_are_known=footers_are_known)
    return list(dict.fromkeys(reasons))


def unsafe_footers(paths: Sequence[str]) -> list[str]:
    """Why Comet would read these local Parquet files otherwise than Spark; empty when it would not.

    Raises:
        OSError: a file cannot be read.
    """
    import pyarrow.parquet as pq

    with ThreadPoolExecutor(max_workers=8) as pool:
        found = list(pool.map(lambda path: _footer(pq.read_metadata(path)), paths))
    return list(dict.fromkeys(reason for reasons in found for reason in reasons))


def _footer(metadata: pq.FileMetaData) -> list[str]:
    keys: Mapping[bytes, bytes] = metadata.metadata or {}
    version = keys.get(b"org.apache.spark.version", b"").decode("ascii", "replace")
    old = version.partition(".")[0] in ("1", "2")
    reasons = []
    if old or b"org.apache.spark.legacyDateTime" in keys or b"org.apache.spark.legacyINT96" in keys:
        reasons.append("files in the calendar of Spark 2, whose dates before 1582 it shifts")
    kinds = (str(metadata.schema.column(position).logical_type) for position in range(metadata.num_columns))
    if any(kind.startswith("Timestamp(") and "milliseconds" in kind for kind in kinds):
        reasons.append("times in milliseconds, of which it turns those out of range into NULL")
    return reasons


def _frames(node: PlanNode) -> Iterator[str]:
    """Frames that slide: what leaves them is subtracted, and NaN, infinities and lost digits stay."""
    if node.kind.removesuffix("Exec") != "Window":
        return
    end = 0
    for frame in _FRAME.finditer(node.detail):
        function = node.detail[end : frame.start()]  # it stands between the frame before and its own
        end = frame.end()
        lower, upper_is_named = frame["lower"], node.detail.startswith(_NAMED_BOUNDS, end)
        if frame["kind"] == "RangeFrame" and not (lower in _NAMED_BOUNDS and upper_is_named):
            yield _RANGE
        if lower != "unboundedpreceding$()" and _SUMS.search(function):
            yield _SLIDING


def _casts(node: PlanNode, types: Mapping[str, str]) -> Iterator[str]:
    for argument, target in _cast_pairs(node.detail):
        wanted = re.match(r"string|varchar|char|decimal", target)
        if wanted is None or _is_exact(argument, types):
            continue
        text = "text" if wanted[0] != "decimal" else "a decimal"
        yield f"a cast to {text} of what may be a float or binary, which it writes with other digits or bytes"


def _cast_pairs(text: str) -> Iterator[tuple[str, str]]:
    """(argument, type) of each `cast(argument as type)`; the type is "string" where brackets do not match."""
    for found in re.finditer(r"(?:\b|_)cast\(", text):
        depth, end = 1, found.end()
        while end < len(text) and depth:
            depth += (text[end] == "(") - (text[end] == ")")
            end += 1
        argument, _, target = text[found.end() : end - 1].rpartition(" as ")
        yield (argument, target) if depth == 0 and argument else ("", "string")


def _is_exact(argument: str, types: Mapping[str, str]) -> bool:
    found = _ATTRIBUTE.match(argument)
    if found is None or " " in argument:
        return False
    return bool(found["bigint"]) or re.split(r"[(<]", types.get(found["id"], "?"))[0] in _EXACT


def _scanned_types(plan: Plan) -> Iterator[tuple[str, str]]:
    """Expression id to type, for what is read from files."""
    for node in plan.nodes:
        columns = dict(_columns(node.field("ReadSchema")))
        for attribute in _split(node.field("Output")) if columns else ():
            name, _, identity = attribute.rpartition("#")
            if name in columns:
                yield identity.removesuffix("L"), columns[name]


def _columns(schema: str) -> Iterator[tuple[str, str]]:
    """(name, type) of "struct<a:int,b:decimal(3,1)>"."""
    for field in _split(schema.removeprefix("struct<").removesuffix(">")):
        name, _, kind = field.partition(":")
        yield name, kind


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside all brackets; "[a, b]" is "a" and "b"."""
    parts, depth = [""], 0
    for character in text.removeprefix("[").removesuffix("]"):
        depth += (character in "([<") - (character in ")]>")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _places(node: PlanNode) -> Iterator[str]:
    if node.kind == "Sample":
        yield "a sample, which picks other rows"
    for name in _BY_PLACE.findall(node.detail):
        yield f"{name}(), which depends on how rows are split into tasks"


def _unseen(node: PlanNode) -> Iterator[str]:
    if _CUT.search(node.detail):
        yield "a plan too long to be looked through"


def _calendars(plan: Plan, *, footers_are_known: bool) -> Iterable[str]:
    """Dates in Parquet files whose calendar nobody has looked at."""
    for scan in plan.scans:
        local = bool(re.search(r"\[file:", scan.location))
        parquet = "parquet" in scan.source.lower()
        if parquet and not (local and footers_are_known) and _CALENDAR.search(scan.read_schema):
            yield "dates or times in files whose calendar is not known here"
