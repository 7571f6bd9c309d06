"""Floor 2: planners. Facts go in, a frozen Decision comes out. No Spark."""

from __future__ import annotations
