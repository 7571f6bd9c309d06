"""What spark-submit gets: one properties file and one command line. Pure: text in, text out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from common.core.errors import ConfigurationError, SeveralErrors, SuiteError, UsageError
from common.core.masking import mask_tree, mask_value
from common.settings.profiles import Profile

DeployMode = Literal["client", "cluster"]

PROPERTIES_FILE = "saltpan.properties"

# How the masters of a site begin, and what to write where only the user knows it.
_MASTERS = {
    "local": ("local", "local[*]"),
    "standalone": ("spark://", "spark://HOST:7077"),
    "yarn": ("yarn", "yarn"),
    "k8s": ("k8s://", "k8s://https://HOST:6443"),
}
_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_UTC = "-Duser.timezone=UTC"
# On the command line, where people look for them and Spark's own scripts do.
_FLAGGED = frozenset({"spark.master", "spark.submit.deployMode"})
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


@dataclass(frozen=True)
class Submission:
    """A spark-submit that is ready to run.

    Attributes:
        command: The words of the command; it names the file that `properties` goes to.
        properties: The text of that file, with its secrets.
    """

    command: tuple[str, ...]
    properties: str

    def shown(self) -> str:
        """Both as they may be printed: secrets masked, the command quoted for a shell."""
        lines = (line.partition("=") for line in self.properties.splitlines())
        masked = (f"{key}{equals}{mask_value(key, value)}" for key, equals, value in lines)
        words = [str(word) for word in mask_tree(list(self.command))]
        return "\n".join([f"# {self._file}", *masked, "", "# command", shlex.join(words)])

    @property
    def _file(self) -> str:
        return self.command[self.command.index("--properties-file") + 1]


def render_submission(
    job_file: str,
    arguments: Sequence[str],
    profile: Profile,
    *,
    py_files: str,
    master: str | None = None,
    deploy_mode: DeployMode = "client",
    program: str = "spark-submit",
    properties_file: str = PROPERTIES_FILE,
    driver_options: Sequence[str] = (),
) -> Submission:
    """The properties file and the command that run a job with a profile.

    Args:
        job_file: The Python file to run.
        arguments: The job's own words.
        profile: The settings; all of them go to the file, with secrets.
        py_files: The archive of the suite.
        master: Wins over the profile's spark.master.
        deploy_mode: Where the driver runs.
        program: The spark-submit to call.
        properties_file: Where the caller will write the properties.
        driver_options: Further options of the driver's JVM, such as its log configuration.

    Raises:
        ConfigurationError: the master does not go with the site or the deploy mode, or values are missing
            that only the user knows; all of them are named.
    """
    master = master or profile.value("spark.master")
    check_submission(profile, master=master, deploy_mode=deploy_mode, job_file=job_file)
    command = (
        *(program, "--master", master, "--deploy-mode", deploy_mode),
        # The cluster's own spark-defaults.conf stays in force below ours.
        *("--properties-file", properties_file, "--load-spark-defaults"),
        *("--py-files", py_files, job_file, *arguments),
    )
    return Submission(command, properties_text(_values(profile, driver_options)))


def _values(profile: Profile, driver_options: Sequence[str]) -> dict[str, str]:
    values = {key: setting.value for key, setting in profile.settings.items() if key not in _FLAGGED}
    for key, options in zip(_JAVA_OPTIONS, (driver_options, ()), strict=True):
        given = values.get(key, "")
        # All answers are given in UTC; what the profile says comes later and wins.
        utc = () if _UTC in given.split() else (_UTC,)
        values[key] = " ".join(filter(None, (*options, *utc, given)))
    return values


def properties_text(values: Mapping[str, str]) -> str:
    r"""The settings in the form that java.util.Properties reads back unchanged, a line each, by key.

    >>> properties_text({"spark.b": "C:\\x", "spark.a": " 1=2 # three"})
    'spark.a=\\ 1=2 # three\nspark.b=C:\\\\x\n'
    """
    return "".join(f"{_key(key)}={_value(values[key])}\n" for key in sorted(values))


def _key(key: str) -> str:
    return re.sub(r"[ =:#!]", r"\\\g<0>", _escaped(key))


def _value(value: str) -> str:
    text = _escaped(value)
    return f"\\{text}" if text.startswith(" ") else text


def _escaped(text: str) -> str:
    # Other characters as units of UTF-16, the only ones that the form knows: right in any encoding.
    return "".join(_ESCAPES.get(each) or (each if " " <= each <= "~" else _utf16(each)) for each in text)


def _utf16(character: str) -> str:
    encoded = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{encoded[at]:02x}{encoded[at + 1]:02x}" for at in range(0, len(encoded), 2))


def resolve_master(profile: Profile, *, flag: str | None, environ: Mapping[str, str]) -> str | None:
    """The master: the flag, then the profile's own, then $SPARK_MASTER where the site leaves it open."""
    return flag or profile.value("spark.master") or environ.get("SPARK_MASTER") or None


def check_submission(profile: Profile, *, master: str, deploy_mode: str, job_file: str) -> None:
    """Whether master, site, deploy mode and values go together, which rendering asks for.

    Raises:
        UsageError: the site is none that spark-submit starts.
        ConfigurationError: something does not go together, or is missing; SeveralErrors for more.
    """
    if profile.site == "connect" or master.startswith("sc://"):
        raise UsageError(
            "profile",
            profile.name,
            expected="a site that spark-submit starts: " + ", ".join(_MASTERS),
            got="a Spark Connect server, which already runs",
            hint="saltpan run JOB --remote sc://HOST:15002",
        )
    problems = [
        *_master_problems(profile, master, deploy_mode),
        *_gaps(profile, master, deploy_mode, job_file),
    ]
    if problems:
        raise problems[0] if len(problems) == 1 else SeveralErrors(problems)


def _master_problems(profile: Profile, master: str, deploy_mode: str) -> Iterable[SuiteError]:
    start, example = _MASTERS.get(profile.site, ("", ""))
    if master and not master.startswith(start):
        fitting = [site for site, (begins, _) in _MASTERS.items() if master.startswith(begins)]
        yield ConfigurationError(
            "master",
            master,
            expected=f"{example}, as the profile {profile.name} has it",
            got=repr(master),
            hint=f"--profile {fitting[0]} goes with it" if fitting else None,
        )
    elif deploy_mode == "cluster" and master.startswith(("local", "spark://")):
        yield ConfigurationError(
            "flag",
            "--deploy-mode",
            expected=f"client with the master {master}",
            got="'cluster'",
            hint="Spark has cluster mode for Python on YARN and Kubernetes only",
        )


def _gaps(profile: Profile, master: str, deploy_mode: str, job_file: str) -> Iterable[SuiteError]:
    """One error for all that only the user knows and has not said."""
    wanted = {} if master else {"--master (or $SPARK_MASTER)": f"--master {_example(profile)}"}
    if profile.site == "k8s" or master.startswith("k8s://"):
        wanted |= _kubernetes_gaps(profile, deploy_mode=deploy_mode, job_file=job_file)
    if wanted:
        yield ConfigurationError(
            "profile",
            profile.name,
            expected=f"a value for {', '.join(wanted)}",
            got="none",
            hint="add " + " ".join(wanted.values()),
        )


def _example(profile: Profile) -> str:
    return _MASTERS.get(profile.site, ("", "URL"))[1]


def _kubernetes_gaps(profile: Profile, *, deploy_mode: str, job_file: str) -> dict[str, str]:
    image, upload = "spark.kubernetes.container.image", "spark.kubernetes.file.upload.path"
    gaps = {}
    roles = ("executor", "driver") if deploy_mode == "cluster" else ("executor",)
    if not all(profile.value(f"spark.kubernetes.{role}.container.image") for role in roles):
        gaps[image] = f"--conf {image}=NAME:TAG"
    if deploy_mode == "cluster" and "://" not in job_file:
        gaps[upload] = f"--conf {upload}=s3a://BUCKET/FOLDER"
    return {key: hint for key, hint in gaps.items() if not profile.value(key)}
