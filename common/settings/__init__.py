"""Floor 1: job settings, the command line, profiles. No Spark; never imported by executors."""

from __future__ import annotations
