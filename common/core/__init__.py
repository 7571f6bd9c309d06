"""Floor 0: errors, units, masking, logs, console. Imports nothing of the suite and no engine."""

from __future__ import annotations
