"""How tallies of tasks become numbers: expected values by counting the partitions' rows here."""

from __future__ import annotations

import pickle
from decimal import Decimal
from itertools import permutations

import pytest

from common.core.errors import ColumnTypeError, NotRunError, ParameterError, UnknownNameError
from common.engine.counters import Counters, _share
from common.engine.task_counters import TallyParam
from common.transforms.counters import Counter, Reading, checked
from common.transforms.tallies import SKETCH_SIZE, Origin, Tallies, Tally, gather, reading, value_of

DECLARED = (
    Counter("rows"),
    Counter("total", "sum"),
    Counter("least", "min"),
    Counter("most", "max"),
    Counter("kinds", "distinct"),
)
KINDS = {counter.name: counter.kind for counter in DECLARED}
PARTS = {0: [5, 1, 1], 1: [9], 2: []}
RIGHT = {"rows": 4, "total": 16, "least": 1, "most": 9, "kinds": 3}


def handed_in(scope: str, partition: int, attempt: int) -> Tallies:
    tally = Tally(DECLARED)
    for number in PARTS[partition]:
        tally.add("rows")
        tally.add("total", number)
        tally.see("least", number)
        tally.see("most", number)
        tally.see("kinds", number)
    return {Origin(scope, partition, attempt): tally.states}


# (what happened, the tasks that ended well: action, partition, number; rows that a plain accumulator adds)
HISTORIES = [
    ("all went well", [("e1", 0, 0), ("e1", 1, 1), ("e1", 2, 2)], 4),
    ("a copy won too", [("e1", 0, 0), ("e1", 0, 3), ("e1", 1, 1), ("e1", 2, 2)], 7),
    ("a shuffle was lost", [*(("e1", p, p) for p in PARTS), ("e1", 0, 7), ("e1", 2, 8)], 7),
    ("a second action", [*(("e1", p, p) for p in PARTS), *(("e2", p, p + 3) for p in PARTS)], 8),
    ("the first action failed", [("e1", 1, 1), *(("e2", p, p + 3) for p in PARTS)], 5),
]


@pytest.mark.parametrize(("_what", "tasks", "naive"), HISTORIES, ids=[history[0] for history in HISTORIES])
def test_each_partition_of_the_last_action_counts_once_in_any_order(
    _what: str, tasks: list[tuple[str, int, int]], naive: int
) -> None:
    orders = list(permutations(tasks)) if len(tasks) < 6 else [tasks, tasks[::-1]]
    for order in orders:
        held: Tallies = {}
        for task in order:
            gather(KINDS, held, handed_in(*task))
        found = reading(KINDS, held)
        assert found is not None
        assert found.values == RIGHT
        assert found.naive["rows"] == naive
        assert bool(found.why) == (naive != 4)


def test_actions_that_cut_the_rows_otherwise_are_not_mixed() -> None:
    """The first action had its rows in partitions 0 and 7, the last one in 0, 1 and 2."""
    (states,) = handed_in("e1", 0, 0).values()
    held: Tallies = {Origin("e1", 7, 1): states}
    for task in (("e1", 1, 0), *(("e2", part, part + 2) for part in PARTS)):
        gather(KINDS, held, handed_in(*task))
    found = reading(KINDS, held)
    assert found is not None
    assert found.values == RIGHT
    assert found.naive["rows"] == 8


def test_what_two_workers_of_one_task_hand_in_adds_up() -> None:
    held = gather(KINDS, handed_in("e1", 0, 4), handed_in("e1", 0, 4))
    found = reading(KINDS, held)
    assert found is not None
    assert found.values == {"rows": 6, "total": 14, "least": 1, "most": 5, "kinds": 2}


def test_reasons_say_what_was_added() -> None:
    held: Tallies = {}
    for task in (("e1", 0, 0), ("e2", 0, 1), ("e2", 0, 2)):
        gather(KINDS, held, handed_in(*task))
    found = reading(KINDS, held)
    assert found is not None
    assert found.why == "1 task of this action ran again; 1 earlier action ran the same rows"
    assert found.differing["rows"] == {"naive": 9, "added": 6, "why": found.why}
    assert set(found.differing) == {"rows", "total"}  # what is no sum is not changed by rows that come twice


def test_zero_is_new_each_time_and_empty_whatever_the_driver_holds() -> None:
    param = TallyParam(DECLARED)
    driver = handed_in("e1", 0, 0)
    one, other = param.zero(driver), param.zero(driver)
    assert one == other == {}
    param.addInPlace(one, driver)
    assert other == {}
    assert pickle.loads(pickle.dumps(param)).zero(driver) == {}


def test_a_sketch_is_exact_while_small_and_near_beyond() -> None:
    for count in (0, 1, SKETCH_SIZE - 1, 50_000):
        tally = Tally((Counter("kinds", "distinct"),))
        for start in range(0, count, 700):
            tally.see_all("kinds", [f"v{number}" for number in range(start, min(count, start + 900))])
        found = value_of("distinct", tally.states["kinds"])
        assert found == count if count < SKETCH_SIZE else abs(found / count - 1) < 0.15


def test_mistakes_are_named() -> None:
    tally = Tally(DECLARED)
    with pytest.raises(UnknownNameError, match="did you mean `rows`"):
        tally.add("row")
    with pytest.raises(ParameterError, match="call see"):
        tally.add("most", 3)
    with pytest.raises(ColumnTypeError, match="an int or a Decimal, got float"):
        tally.add("total", 0.5)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="rows twice"):
        checked((Counter("rows"), Counter("rows", "max")))
    with pytest.raises(ParameterError, match="a letter first"):
        Counter("Rows")
    with pytest.raises(ParameterError, match="or distinct, got average"):
        Counter("rows", "average")  # type: ignore[arg-type]
    assert tally.states["kinds"] == frozenset()
    tally.see("most", None)
    assert tally.states["most"] is None


def test_counters_of_nothing_have_not_run() -> None:
    with pytest.raises(NotRunError, match=r"\[COUNTER_NOT_RUN\] counters `rows`: .* got not run"):
        Counters(Counter("rows")).settle()


def test_a_sum_that_was_read_several_times_divides_or_was_none() -> None:
    assert _share(9_900, 2) == 4_950
    assert _share(0, 3) == 0
    assert _share(7, 2) is None
    assert _share(Decimal("-3.0"), 2) == Decimal("-1.5")
    assert _share(Decimal("0.3"), 2) is None
    big = Decimal("12345678901234567890123456789012345678")
    assert _share(big, 2) == Decimal("6172839450617283945061728394506172839")


def test_only_what_differs_is_told() -> None:
    found = Reading({"rows": 4, "most": None}, {"rows": None, "most": None}, "left out")
    assert found.differing == {"rows": {"naive": None, "added": None, "why": "left out"}}


def test_a_counter_of_another_name_is_told_before_it_is_read() -> None:
    with pytest.raises(UnknownNameError, match=r"`rwos`.*mean `rows`"):
        Counters(Counter("rows")).value("rwos")
