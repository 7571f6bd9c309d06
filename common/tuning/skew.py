"""How a join treats skew: broadcast, hot keys apart, salts, or nothing, by what each would cost."""

from __future__ import annotations

from typing import Any, Literal

from common.core.errors import StrategyError
from common.core.units import format_bytes
from common.tuning.decision import Decision
from common.tuning.facts import Facts
from common.tuning.hot_keys import TaskSizes, candidates
from common.tuning.skew_facts import JoinQuestion, Known, known_of
from common.tuning.skew_ways import (
    Ways,
    all_broadcast,
    all_split,
    broadcast_or_split,
    key_record,
    split_within_budget,
)
from common.tuning.skew_words import apart_in_words, dropped_in_words, hot_in_words, key_lines, rows_text

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
        "salt": all_split(known) if forced else split_within_budget(known),
    }
    against = {
        "broadcast": _why_not_broadcast(known, whole),
        "isolate": _why_not_apart(known, facts) or _why_not_ways(known, ways["isolate"], "isolate"),
        "salt": _why_not_apart(known, facts) or _why_not_ways(known, ways["salt"], "salt"),
    }
    if forced:
        _refuse(strategy, against["broadcast"], ways, question)
    choice = strategy if forced else next((it for it in against if not against[it]), "shuffle")
    chosen = ways.get(choice, Ways())
    # Of keys that nobody looked for nothing is said.
    why_plain = None if strategy in ("shuffle", "drop") else _why_plain(known, facts, against)
    reason = _reason(choice, known, chosen, whole, why_plain=why_plain)
    evidence = _evidence(choice, known, chosen) | ({"broadcast": whole} if choice == "broadcast" else {})
    sizes = _task_sizes(known, whole)
    evidence["predicted_task_bytes"] = {name: size.record() for name, size in sizes.items()}
    return Decision(
        choice,
        f"as asked; {reason}" if forced else reason,
        () if forced else _rejected(choice, against, known, sizes),
        evidence,
        _guidelines(choice, chosen),
        forced=forced,
    )


def _task_sizes(known: Known, whole: Which) -> dict[str, TaskSizes]:
    """What the tasks of each strategy read, where it may be used."""
    sizes = {
        "shuffle": known.shuffled,
        "isolate": broadcast_or_split(known).task_sizes(known),
        "salt": split_within_budget(known).task_sizes(known),
    }
    if known.question.how in _BUILT[whole]:
        kept = known.right if whole == "left" else known.left
        part = (kept.rows or 0) * kept.row_bytes / known.tasks
        sizes["broadcast"] = TaskSizes(part, part)
    return sizes


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
    """Why hot keys are not treated apart whatever the way; None when they may be."""
    if known.keys or known.nulls_matter:
        return None
    share = known.question.hot_share
    samples = [facts.inputs[name].sample for name in ("left", "right")]
    if facts.probed.keys() & {"hot_keys", "scanned"}:
        return f"no key holds {share:.2g} of a side's rows"
    if candidates(samples, share=share):
        return "keys of this kind have no hash that could tell hot ones"
    return (
        f"no key holds {share:.2g} of a side's rows"
        if all(samples)
        else "nothing cheap tells which keys are hot"
    )


def _why_not_ways(known: Known, ways: Ways, choice: str) -> str | None:
    """Why these ways break a limit, or save neither work nor waiting; None when they are worth it."""
    broadcast = _over_limits(all_broadcast(known), known.question)
    if known.keys and not ways.of:
        return broadcast or _over_limits(all_split(known), known.question)
    if choice == "isolate" and known.keys and not ways.broadcasts:
        return broadcast
    ratio = ways.treated_ratio(known)
    if ratio >= _WORTHWHILE_RATIO:
        return None
    if known.core_count < _MANY_CORES:
        cores = f"{known.core_count} core{' waits' if known.core_count == 1 else 's wait'} for no straggler"
        return f"{cores}, and the hot keys hold only {ratio:.1%} of all rows"
    return _why_as_uneven(known.shuffled, ways.task_sizes(known))


def _why_as_uneven(before: TaskSizes, after: TaskSizes) -> str | None:
    """Why the largest task keeps nobody waiting, or would as long as before; None when it is made smaller."""
    if before.ratio < _STRAGGLER_RATIO:
        return f"the largest task would be only {before.ratio:.1f} times the median"
    if after.ratio > max(before.ratio / 2, _STRAGGLER_RATIO):
        return f"the largest task would still be {after.ratio:.1f} times the median"
    return None


def _why_plain(known: Known, facts: Facts, against: dict[str, str | None]) -> str | None:
    """Why keys are shuffled as they are, where hot ones are known or were looked for."""
    return _why_not_apart(known, facts) or against["salt"] or against["isolate"]


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


def _rejected(
    choice: str, against: dict[str, str | None], known: Known, sizes: dict[str, TaskSizes]
) -> tuple[tuple[str, str], ...]:
    """What was not taken, and why; where hot keys do not matter one sentence has said it."""
    named = against if known.hot and choice != "shuffle" else {"broadcast": against["broadcast"]}
    rejected = [(name, why) for name, why in named.items() if name != choice and why]
    if choice == "isolate" and not against["salt"]:
        size = format_bytes(round(sizes["salt"].largest_bytes))
        rejected.append(("salt", f"it would shuffle the hot rows as well, its largest task is {size}"))
    if choice == "broadcast":
        rejected.append(("shuffle", "it would move the rows of both sides"))
    if choice in ("isolate", "salt"):
        ours, theirs = sizes[choice], sizes["shuffle"]
        largest = f"its largest task would be {format_bytes(round(theirs.largest_bytes))}"
        largest += f", {theirs.ratio:.1f} times the median"
        rejected.append(("shuffle", f"{largest}; here it is {format_bytes(round(ours.largest_bytes))}"))
    return tuple(rejected)


def _reason(choice: str, known: Known, ways: Ways, whole: Which, *, why_plain: str | None) -> str:
    question = known.question
    dropped = dropped_in_words(known)
    if choice == "broadcast":
        size = (known.left if whole == "left" else known.right).decoded_bytes
        about = "of unknown size" if size is None else f"about {format_bytes(round(size))} decoded"
        limit = format_bytes(question.max_broadcast_bytes)
        return f"{dropped}the {whole} side is {about}, within {limit}: no shuffle"
    if choice in ("isolate", "salt") and (ways.of or known.nulls_matter):
        return dropped + apart_in_words(known, ways)
    joined = f"{rows_text(known)} are shuffled once at most, adaptive execution splits what grows too large"
    hot = f"{hot_in_words(known)}; " if known.keys else ""
    return f"{dropped}{hot}{why_plain}; {joined}" if why_plain else dropped + hot + joined


def _evidence(choice: str, known: Known, ways: Ways) -> dict[str, Any]:
    null = known.null
    evidence: dict[str, Any] = {
        "left_rows": known.left.rows,
        "right_rows": known.right.rows,
        "tasks": known.tasks,
        "hot_keys": ways.record() + [key_record(key) for key in known.keys if ways.way_of(key) is None],
        "null_rows": {"left": null.left_rows, "right": null.right_rows} if null else None,
        "hot_keys_in_words": key_lines(known, ways) or None,
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
