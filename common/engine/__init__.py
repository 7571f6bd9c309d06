"""Floor 4: the only sessions, the only reads and writes, facts about inputs, plans as data."""

from __future__ import annotations
