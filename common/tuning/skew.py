"""How a join treats skew: broadcast, hot keys apart, salts, or nothing, by what each would cost."""

from __future__ import annotations

from typing import Any, Literal

from common.core.errors import StrategyError
from common.core.units import format_bytes
from common.tuning.decision import Decision
from common.tuning.facts import Facts
from common.tuning.hot_keys import task_sizes
from common.tuning.skew_facts import JoinQuestion, Known, known_of
from common.tuning.skew_ways import Ways, all_broadcast, all_split, broadcast_or_split, key_record
from common.tuning.skew_words import apart_in_words, dropped_in_words, rows_text

Strategy = Literal["auto", "broadcast", "shuffle", "isolate", "salt", "drop"]
Which = Literal["left", "right"]

# Sides that may be broadcast as a whole: the other one's rows are kept.
_BUILT: dict[Which, tuple[str, ...]] = {
    "right": ("inner", "left", "semi", "anti"),
    "left": ("inner", "right"),
}
# Less than this share of all rows saves less in the shuffle than a second read of both sides costs.
_WORTHWHILE_RATIO = 0.25
# From so many cores on, a task that is so many times the median keeps the others waiting.
_MANY_CORES = 4
_STRAGGLER_RATIO = 2.0


def plan_join(strategy: Strategy, question: JoinQuestion, facts: Facts) -> Decision:
    """Choose how a join treats skew.

    Args:
        strategy: "auto", or the choice that the user forces.
        question: What is asked.
        facts: Of the inputs `left` and `right`, with their samples; `probed["hot_keys"]` has the exact counts
            of hot keys, where they were counted.

    Raises:
        StrategyError: the forced strategy cannot give the right answer, or would break a limit.
    """
    known = known_of(question, facts)
    forced = strategy != "auto"
    whole = _whole_side(known)
    ways = {
        "isolate": all_broadcast(known) if forced else broadcast_or_split(known),
        "salt": all_split(known),
    }
    against = {
        "broadcast": _why_not_broadcast(known, whole),
        "isolate": _why_not_apart(known, facts) or _over_limits(ways["isolate"], question),
        "salt": _why_not_apart(known, facts) or _over_limits(ways["salt"], question),
    }
    if forced:
        _refuse(strategy, against["broadcast"], ways, question)
    choice = strategy if forced else next((it for it in against if not against[it]), "shuffle")
    chosen = ways.get(choice, Ways())
    reason = _reason(choice, known, chosen, whole, why_plain=_why_not_apart(known, facts))
    return Decision(
        choice,
        f"as asked; {reason}" if forced else reason,
        () if forced else _rejected(choice, against, known),
        _evidence(choice, known, chosen, all_split(known))
        | ({"broadcast": whole} if choice == "broadcast" else {}),
        _guidelines(choice, chosen),
        forced=forced,
    )


def fits_in_broadcast(question: JoinQuestion, facts: Facts) -> bool:
    """True when one whole side may be and is small enough to be broadcast, so that hot keys do not matter."""
    known = known_of(question, facts)
    return _why_not_broadcast(known, _whole_side(known)) is None


def _whole_side(known: Known) -> Which:
    """The side that a broadcast of one whole side takes."""
    if known.question.how != "inner":
        return "left" if known.question.how == "right" else "right"
    left, right = known.left.decoded_bytes, known.right.decoded_bytes
    return "left" if left is not None and (right is None or left < right) else "right"


def _why_not_broadcast(known: Known, which: Which) -> str | None:
    question = known.question
    if question.how not in _BUILT[which]:
        return f"--how {question.how} keeps the rows of both sides"
    size = (known.left if which == "left" else known.right).decoded_bytes
    if size is None:
        return f"nothing cheap tells how large the {which} side is"
    if size > question.max_broadcast_bytes:
        limit = format_bytes(question.max_broadcast_bytes)
        return f"the {which} side is about {format_bytes(round(size))} decoded, the limit is {limit}"
    return None


def _why_not_apart(known: Known, facts: Facts) -> str | None:
    """Why hot keys are not treated apart; None when that saves work or waiting."""
    share = known.question.hot_share
    if not known.keys and not known.nulls_matter:
        looked = "hot_keys" in facts.probed or all(facts.inputs[name].sample for name in ("left", "right"))
        return (
            f"no key holds {share:.2g} of a side's rows"
            if looked
            else "nothing cheap tells which keys are hot"
        )
    if known.hot_ratio >= _WORTHWHILE_RATIO:
        return None
    if known.core_count < _MANY_CORES:
        cores = f"{known.core_count} cores wait for no straggler"
        return f"{cores}, and the hot keys hold only {known.hot_ratio:.1%} of all rows"
    if known.shuffled.ratio < _STRAGGLER_RATIO:
        return f"the largest task would be only {known.shuffled.ratio:.1f} times the median"
    return None


def _over_limits(ways: Ways, question: JoinQuestion) -> str | None:
    if ways.broadcast_bytes > question.max_broadcast_bytes:
        size, limit = format_bytes(round(ways.broadcast_bytes)), format_bytes(question.max_broadcast_bytes)
        return f"the rows that match hot keys are about {size} decoded, the limit for a broadcast is {limit}"
    if ways.replication_ratio > question.replication_budget:
        times, budget = f"{ways.replication_ratio:.1f}", f"{question.replication_budget:g}"
        return f"the copies that salts make would be {times} times the rows, the budget is {budget}"
    return None


def _refuse(
    strategy: Strategy, no_broadcast: str | None, ways: dict[str, Ways], question: JoinQuestion
) -> None:
    """A forced strategy that breaks a limit or could not be right is an error with its numbers."""
    problem = {
        # What cannot be known is the user's to know.
        "broadcast": None if (no_broadcast or "").startswith("nothing cheap") else no_broadcast,
        "isolate": _over_limits(ways["isolate"], question),
        "salt": _over_limits(ways["salt"], question),
        "drop": None if question.drop else "no --drop-keys",
    }.get(strategy)
    if problem is None:
        return
    hints = {
        "broadcast": "raise --max-broadcast-bytes if the memory is there, or use auto",
        "isolate": "raise --max-broadcast-bytes if the memory is there, or use salt or auto",
        "salt": "raise --replication-budget, lower --salts, or use isolate or auto",
        "drop": "name the keys with --drop-keys",
    }
    raise StrategyError(
        "strategy", strategy, expected="what the limits allow", got=problem, hint=hints[strategy]
    )


def _rejected(choice: str, against: dict[str, str | None], known: Known) -> tuple[tuple[str, str], ...]:
    """What was not taken, and why; where hot keys do not matter one sentence has said it."""
    named = against if known.hot and choice != "shuffle" else {"broadcast": against["broadcast"]}
    rejected = [(name, why) for name, why in named.items() if name != choice and why]
    if choice == "isolate" and not against["salt"]:
        rejected.append(("salt", "it would shuffle the hot rows as well"))
    if choice == "broadcast":
        rejected.append(("shuffle", "it would move the rows of both sides"))
    if choice in ("isolate", "salt"):
        sizes = f"its largest task would be {known.shuffled.ratio:.1f} times the median"
        rejected.append(("shuffle", sizes))
    return tuple(rejected)


def _reason(choice: str, known: Known, ways: Ways, whole: Which, *, why_plain: str | None) -> str:
    question = known.question
    dropped = dropped_in_words(known)
    if choice == "broadcast":
        size = (known.left if whole == "left" else known.right).decoded_bytes
        about = "of unknown size" if size is None else f"about {format_bytes(round(size))} decoded"
        limit = format_bytes(question.max_broadcast_bytes)
        return f"{dropped}the {whole} side is {about}, within {limit}: no shuffle"
    if choice in ("isolate", "salt") and (known.keys or known.nulls_matter):
        return dropped + apart_in_words(known, ways)
    joined = f"{rows_text(known)} are shuffled once, adaptive execution splits what grows too large"
    return f"{dropped}{why_plain}; {joined}" if why_plain else dropped + joined


def _evidence(choice: str, known: Known, ways: Ways, salted: Ways) -> dict[str, Any]:
    cold = task_sizes((), known.left, known.right, tasks=known.tasks)
    parted = task_sizes(known.keys, known.left, known.right, tasks=known.tasks, parts=salted.salts)
    evidence: dict[str, Any] = {
        "left_rows": known.left.rows,
        "right_rows": known.right.rows,
        "tasks": known.tasks,
        "predicted_task_bytes": {
            "shuffle": known.shuffled.record(),
            "isolate": cold.record(),
            "salt": parted.record(),
        },
        "hot_keys": ways.record() or [key_record(key) for key in known.keys],
        "dropped": [key_record(key) for key in known.dropped] or None,
    }
    if choice in ("isolate", "salt"):
        evidence["nulls_apart"] = known.nulls_matter
        evidence["broadcast_bytes"] = round(ways.broadcast_bytes)
        evidence["replication_ratio"] = round(ways.replication_ratio, 3)
    return {key: value for key, value in evidence.items() if value is not None}


def _guidelines(choice: str, ways: Ways) -> tuple[str, ...]:
    if choice == "isolate" and any(way.startswith("split") for _, way in ways.of):
        return ("K6", "K7", "K8")
    return {
        "broadcast": ("D4", "K5"),
        "shuffle": ("K3",),
        "isolate": ("K6",),
        "salt": ("K7",),
        "drop": ("K2",),
    }[choice]
