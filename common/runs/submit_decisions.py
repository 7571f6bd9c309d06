"""What `saltpan submit` decided, on its way to the record of the job: a setting of the session carries it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from common.settings.profiles import Setting
from common.tuning.decision import Decision

KEY = "spark.saltpan.decisions"


def handed_over(decisions: Mapping[str, Decision]) -> Setting:
    """The setting that carries these decisions; the keys say what each is about."""
    notes = [{"about": about, **decision.record()} for about, decision in decisions.items()]
    return Setting(KEY, json.dumps(notes), "submit", "saltpan submit")


def received(spark: SparkSession) -> Sequence[dict[str, Any]]:
    """The decisions behind this session, as the record has them; none unless `saltpan submit` started it."""
    notes: Sequence[dict[str, Any]] = json.loads(spark.conf.get(KEY, None) or "[]")
    return notes
