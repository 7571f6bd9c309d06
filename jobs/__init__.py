"""Floor 6: the jobs, one page each."""

from __future__ import annotations
