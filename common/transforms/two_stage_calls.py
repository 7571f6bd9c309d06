"""The registry of aggregates: which ones Spark combines in each task, and which ones a second stage helps."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

import pyspark.sql.functions

from common.core.errors import ParameterError
from common.transforms.aggregate_text import Aggregate, Call, parse_aggregate

# combined: partial results of a few bytes per group and task. distinct: Spark shuffles by (group, value),
# then by group. sketch: partial results of kilobytes. list: the answer is all the values. quantile, mode,
# set: each task's partial result of a group holds all its values, and one task merges them. whole: no parts.
Kind = Literal["combined", "distinct", "sketch", "list", "quantile", "mode", "set", "whole"]

_COMBINED = (
    "any", "avg", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "corr", "count", "count_if",
    "covar_pop", "covar_samp", "every", "kurtosis", "max", "max_by", "mean", "min", "min_by", "regr_avgx",
    "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy",
    "regr_syy", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp", "sum", "try_avg",
    "try_sum", "var_pop", "var_samp", "variance",
)  # fmt: skip
_SKETCH = (
    "approx_count_distinct", "approx_percentile", "approx_top_k", "approx_top_k_accumulate",
    "approx_top_k_combine", "bitmap_and_agg", "bitmap_construct_agg", "bitmap_or_agg", "count_min_sketch",
    "histogram_numeric", "hll_sketch_agg", "hll_union_agg", "kll_merge_agg_bigint", "kll_merge_agg_double",
    "kll_merge_agg_float", "kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float",
    "percentile_approx", "theta_intersection_agg", "theta_sketch_agg", "theta_union_agg",
    "tuple_intersection_agg_double", "tuple_intersection_agg_integer", "tuple_sketch_agg_double",
    "tuple_sketch_agg_integer", "tuple_union_agg_double", "tuple_union_agg_integer",
)  # fmt: skip
LISTS = ("collect_list", "array_agg")
_JOINED = ("listagg", "string_agg")
_QUANTILES = ("percentile", "median", "percentile_cont", "percentile_disc")
_RANKED = frozenset({*_QUANTILES, "approx_percentile", "percentile_approx"})
_WHOLE = ("collect_union", "measure")  # Spark 4.2 and 4.3
_UNSTEADY = ("first", "first_value", "last", "last_value", "any_value")
KINDS: dict[str, Kind] = {
    **dict.fromkeys(_COMBINED, "combined"),
    **dict.fromkeys(_SKETCH, "sketch"),
    **dict.fromkeys((*LISTS, *_JOINED), "list"),
    **dict.fromkeys(_QUANTILES, "quantile"),
    "mode": "mode",
    "collect_set": "set",
    **dict.fromkeys(_WHOLE, "whole"),
}
# What a second stage is for, as users are told it.
TWO_STAGE = ("percentile", "median", "percentile_cont", "percentile_disc", "mode", "collect_set")
# What SQL calls otherwise than Python, or Python has elsewhere.
_ONLY_SQL = (
    "approx_top_k_estimate", "bigint", "binary", "boolean", "date", "double", "float", "from_avro",
    "from_protobuf", "int", "len", "localtime", "luhn_check", "mod", "schema_of_avro", "smallint", "space",
    "string", "time", "timestamp", "tinyint", "to_avro", "to_protobuf",
)  # fmt: skip
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[dD]?")
_LIST = re.compile(r"array\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_ORDER = re.compile(r"(?P<value>.+?)(?:\s+(?P<way>asc|desc))?", re.IGNORECASE | re.DOTALL)


# Of what Spark combines, these come out the same in whatever order floats are taken.
_EXACT = frozenset(
    {"any", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "count", "count_if", "every", "max",
     "max_by", "median", "min", "min_by", "percentile", "percentile_cont", "percentile_disc", "regr_count",
     "some"}
)  # fmt: skip


@cache
def _known() -> tuple[frozenset[str], frozenset[str]]:
    """The aggregates, and the other functions of Spark."""
    aggregates = frozenset((*KINDS, *_UNSTEADY))
    return aggregates, frozenset((*dir(pyspark.sql.functions), *_ONLY_SQL)) - aggregates


def parsed(text: str) -> Aggregate:
    """One expression of `--aggregate`.

    Raises:
        SqlError: as `parse_aggregate`.
        ParameterError: as `parse_aggregate`; a rank is no share.
    """
    aggregates, functions = _known()
    aggregate = parse_aggregate(text, known=aggregates, functions=functions)
    for call in aggregate.calls:
        _refuse_no_share(call)
    return aggregate


def _refuse_no_share(call: Call) -> None:
    ranks = call.arguments[:1] if call.order else call.arguments[1:2]
    if call.function not in _RANKED or not ranks:
        return
    wrong = [number for number in _numbers(ranks[0]) if not 0 <= number <= 1]
    if wrong:
        hint = f"write {wrong[0] / 100:g} for {wrong[0]:g} %" if 1 < wrong[0] <= 100 else None
        expected, got = "shares of the values, from 0 to 1", f"{wrong[0]:g}"
        raise ParameterError("aggregate", call.text[:120], expected=expected, got=got, hint=hint)


def kind_of(call: Call) -> Kind:
    """How the call's partial results behave.

    >>> texts = ("sum(x)", "sum(distinct x)", "median(x)", "percentile(x, y)")
    >>> [kind_of(parsed(text).calls[0]) for text in texts]
    ['combined', 'distinct', 'quantile', 'whole']
    """
    kind = KINDS.get(call.function, "whole")
    if call.is_distinct:
        return "set" if call.function in LISTS or kind == "set" else "distinct"
    if kind == "quantile" and not quantile_of(call):
        return "whole"
    if kind == "mode" and (call.order or len(call.arguments) not in (1, 2)):
        return "whole"
    return "whole" if kind == "set" and len(call.arguments) != 1 else kind


def depends_on_order(call: Call) -> bool:
    """True when floats that are taken in another order give other last digits.

    >>> [depends_on_order(parsed(text).calls[0]) for text in ("avg(x)", "max(x)", "median(x)")]
    [True, False, False]
    """
    return kind_of(call) in ("combined", "distinct", "sketch") and call.function not in _EXACT


def quantile_of(call: Call) -> tuple[str, tuple[float, ...]] | None:
    """The value whose quantiles are asked, and their shares from below; None where no number tells them.

    >>> quantile_of(parsed("percentile(y, array(0.1, 0.9))").calls[0])
    ('y', (0.1, 0.9))
    >>> quantile_of(parsed("percentile_cont(0.25) WITHIN GROUP (ORDER BY y DESC)").calls[0])
    ('y', (0.75,))
    """
    arguments, order = call.arguments, _ORDER.fullmatch(call.order)
    if call.function == "median" and len(arguments) == 1:
        return arguments[0], (0.5,)
    if call.function == "percentile" and len(arguments) == 2:
        shares = _shares(arguments[1])
        return (arguments[0], shares) if shares else None
    places_nulls = re.search(r"\bnulls\s+(first|last)$", call.order, re.IGNORECASE)
    if order is None or len(arguments) != 1 or places_nulls:
        return None
    shares = _shares(arguments[0])
    if (order["way"] or "").lower() == "desc":
        shares = tuple(1 - share for share in shares)
    return (order["value"], shares) if shares else None


def _shares(text: str) -> tuple[float, ...]:
    shares = _numbers(text)
    return shares if all(0 <= share <= 1 for share in shares) else ()


def _numbers(text: str) -> tuple[float, ...]:
    """The numbers of a literal, or of an array of literals; nothing when something else is among them."""
    listed = _LIST.fullmatch(text)
    words = [word.strip() for word in (listed[1] if listed else text).split(",")]
    if not all(_NUMBER.fullmatch(word) for word in words):
        return ()
    return tuple(float(word.rstrip("dD")) for word in words)


def where(value: str, condition: str) -> str:
    """The value where the condition of FILTER holds, else NULL, which these aggregates pass over."""
    return f"CASE WHEN {condition} THEN {value} END" if condition else value
