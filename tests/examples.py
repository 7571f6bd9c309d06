"""How many random cases a property test on Spark tries."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings


def random_cases(count: int) -> settings:
    """So many cases, or as many times more as SALTPAN_EXAMPLES says; without a limit of time."""
    more = int(os.environ.get("SALTPAN_EXAMPLES", "1"))
    health = [HealthCheck.function_scoped_fixture]
    return settings(max_examples=count * more, deadline=None, suppress_health_check=health)
