"""Floor 3: lazy DataFrame -> DataFrame and Column -> Column. No action, no session, no IO, no JVM object."""

from __future__ import annotations
