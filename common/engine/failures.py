"""The one place where Spark's errors become the suite's: one sentence, no JVM stack, the next right step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from common.core.errors import SuiteError
from common.engine import data_failures, sql_failures
from common.engine.clues import Clue, find_clues, from_engine
from common.engine.machine_failures import jvm_failure, machine_failure
from common.engine.sql_failures import Rule
from common.engine.worker_failures import worker_failure

# Conditions that only wrap: what they wrap is the news.
_WRAPPERS = ("TASK_WRITE_FAILED", "INTERNAL_ERROR", "FAILED_EXECUTE_UDF", "STAGE_MATERIALIZATION")
_RULES: Mapping[str, Rule] = {**sql_failures.RULES, **data_failures.RULES}
# By the class of the SQL state, for the hundreds of conditions that need no rule of their own.
_BY_STATE: Mapping[str, Rule] = {
    **dict.fromkeys(("07", "0A", "21", "42", "46", "54"), sql_failures.unfit),
    **dict.fromkeys(("22", "23"), data_failures.bad_value),
    "KD": data_failures.bad_data,
}


@contextlib.contextmanager
def translated(*, inputs: Sequence[str] = ()) -> Iterator[None]:
    """Raise the engine's errors inside the block as the suite's, chained to the original.

    The suite's own errors, and what is unknown or a bug of ours, pass through untouched.

    Args:
        inputs: The paths of the run's inputs, named where Spark does not say which file it was.

    Raises:
        SuiteError: the leaf that says what the engine's error means.
    """
    try:
        yield
    except SuiteError:
        raise
    except Exception as error:
        known = translate(error, inputs=inputs)
        if known is None:
            raise
        raise known from error


def translate(error: BaseException, *, inputs: Sequence[str] = ()) -> SuiteError | None:
    """The suite's error for an error of Spark, of its Java gateway or of Spark Connect.

    Args:
        error: Anything that was raised; a SuiteError is returned as it is.
        inputs: The paths of the run's inputs, named where Spark does not say which file it was.

    Returns:
        The suite's error, or None when the error is not the engine's, or not one that is understood:
        then it is a bug, and its traceback is worth seeing.
    """
    if isinstance(error, SuiteError):
        return error
    if not from_engine(error):
        return None
    clues = find_clues(error)
    for look in (worker_failure, jvm_failure, machine_failure, _condition_failure):
        known = look(clues)
        if known is not None:
            return known if known.name else _named(known, ", ".join(inputs) or "input")
    return None


def _named(error: SuiteError, name: str) -> SuiteError:
    return type(error)(error.what, name, expected=error.expected, got=error.got, hint=error.hint)


def _condition_failure(clues: Sequence[Clue]) -> SuiteError | None:
    told = [clue for clue in clues if clue.condition and not clue.condition.startswith(_WRAPPERS)]
    for clue in told:
        rule = _rule(clue.condition)
        if rule is not None:
            return rule(clue, clues)
    for clue in told:
        by_state = _BY_STATE.get(clue.state[:2])
        if by_state is not None:
            return by_state(clue, clues)
    return None


def _rule(condition: str) -> Rule | None:
    return _RULES.get(condition) or _RULES.get(condition.partition(".")[0])
