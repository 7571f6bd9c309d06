"""What is wrong with a configuration: of a profile, of a file of anyone's; and what each value is for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from common.core.masking import mask_value
from common.settings import accelerator_rules, cluster_rules, conf_rules
from common.settings.conf_rules import View
from common.settings.findings import Finding, finding
from common.settings.profiles import Profile, Setting
from common.settings.properties import Entry, entries
from common.settings.registry import load_registry, too_late

_RULES = (*conf_rules.RULES, *cluster_rules.RULES, *accelerator_rules.RULES)
_FLAG = "flag"


class Row(NamedTuple):
    """A line of `saltpan conf show`; secrets are masked."""

    key: str
    value: str
    origin: str
    guidelines: str
    why: str


def check_profile(profile: Profile, *, late: bool) -> list[Finding]:
    """All that can be said of a profile: names, values, and settings that go together.

    Args:
        profile: The composed configuration.
        late: Whether Spark runs already, as under spark-submit: flags for a new session come too late then;
            rules of settings that go together are left out, since most of those are not in the profile.
    """
    found = list(_one_by_one(profile.settings))
    if late:
        useless = {each.key for each in found if each.severity == "error"}
        return [*found, *_late(profile, useless=useless)]
    return [*found, *_together(profile.settings, is_ours=True)]


def audit_text(text: str, *, origin: str) -> list[Finding]:
    """All that can be said of a properties file of anyone's; a repeated key's last value counts, as in Java.

    Args:
        text: The file's content, in spark-defaults form.
        origin: The file's name, for the findings.
    """
    found: list[Finding] = []
    settings: dict[str, Setting] = {}
    for entry in entries(text):
        here = f"{origin}:{entry.line}"
        found += _form(entry, here, settings.get(entry.key))
        settings[entry.key] = Setting(entry.key, entry.value, "file", here)
    spark = {key: item for key, item in settings.items() if key.startswith("spark.") and item.value}
    return [*found, *_one_by_one(spark), *_together(spark, is_ours=False)]


def render_profile(profile: Profile) -> list[Row]:
    """The settings of a profile by key: value, where it is written, the rules it follows, what it is for."""
    return [_row(setting) for _, setting in sorted(profile.settings.items())]


def _one_by_one(settings: Mapping[str, Setting]) -> Iterator[Finding]:
    registry = load_registry()
    for setting in settings.values():
        found = registry.check(setting.key, setting.value, origin=setting.origin)
        if found is not None:
            yield found


def _together(settings: Mapping[str, Setting], *, is_ours: bool) -> Iterator[Finding]:
    view = View(settings, load_registry(), is_ours=is_ours)
    for rule in _RULES:
        yield from rule(view)


def _late(profile: Profile, *, useless: set[str]) -> Iterator[Finding]:
    registry = load_registry()
    for setting in profile.settings.values():
        known = registry.find(setting.key)
        is_dead = known is not None and known.status == "dead"
        if setting.layer == _FLAG and setting.key not in useless and not is_dead:
            found = too_late(setting.key, setting.value, origin=setting.origin)
            if found is not None:
                yield found


def _form(entry: Entry, here: str, before: Setting | None) -> Iterator[Finding]:
    if before is not None:
        sentence = f"stands at {before.origin} too: the last one counts"
        yield finding(entry.key, entry.value, here, severity="warning", sentence=sentence)
    if not entry.key.startswith("spark."):
        sentence = "spark-submit ignores keys that do not begin with spark."
        hint = f"Hadoop's own go by spark.hadoop.{entry.key}" if "." in entry.key else None
        yield finding(entry.key, entry.value, here, severity="warning", sentence=sentence, hint=hint)
    elif not entry.value:
        yield finding(entry.key, "", here, severity="warning", sentence="no value: Spark gets an empty text")


def _row(setting: Setting) -> Row:
    registry = load_registry()
    known = registry.find(setting.key)
    described = known or registry.family(setting.key)
    rules = " ".join(known.guidelines) if known else ""
    # What is known of a misspelt key is that its value may be a secret.
    found = registry.check(setting.key, setting.value) if described is None else None
    value = found.value if found else mask_value(setting.key, setting.value)
    return Row(setting.key, value, setting.origin, rules, described.why if described else "")
