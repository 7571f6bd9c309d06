"""spark-submit as a process: which program it is, what it gets to see, and a file for it alone."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from common.core.errors import ConfigurationError, InstallationError
from common.engine.installation import prepare_gateway, prepare_installation
from common.engine.java import spark_home
from common.engine.worker_python import check_worker_python
from common.settings.submission import Submission
from common.settings.submit_options import SubmitOptions

_HERE = ("local", "spark://")  # masters whose workers are taken to have this machine's Python


def submit_environment(
    environ: Mapping[str, str], options: SubmitOptions, submission: Submission, *, folder: Path
) -> dict[str, str]:
    """What spark-submit gets to see: this Spark, and this Python where workers can be taken to have it."""
    master = submission.command[submission.command.index("--master") + 1]
    if master.startswith("yarn"):
        _check_hadoop(environ)
    in_client = options.deploy_mode == "client"
    here = in_client and master.startswith(_HERE)
    if here and master.startswith("local"):
        prepare_installation(environ)
    else:
        prepare_gateway(environ)
        if here:
            check_worker_python(environ)
    new = {"SPARK_HOME": str(spark_home(environ))}
    if in_client:
        new |= {
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": sys.executable if here else "python3",
        }
        if options.conf_dir:
            new["SALTPAN_CONF"] = str(folder.resolve())
    return {**new, **environ}


def _check_hadoop(environ: Mapping[str, str]) -> None:
    """The YARN client finds its cluster by a folder that a variable names, or Spark's own spark-env.sh.

    Raises:
        ConfigurationError: nothing names it.
    """
    names = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
    folder = Path(environ.get("SPARK_CONF_DIR") or spark_home(environ) / "conf")
    if not any(environ.get(name) for name in names) and not (folder / "spark-env.sh").is_file():
        expected = "the folder of the cluster's core-site.xml and yarn-site.xml"
        hint = f"export {names[0]} or {names[1]}"
        raise ConfigurationError("variable", names[0], expected=expected, got="nothing", hint=hint)


def write_privately(path: Path, text: str) -> None:
    """Secrets are for this user only: on a command line everybody on the machine would read them."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="ascii")


def find_spark_submit(environ: Mapping[str, str]) -> str:
    """Beside the running Python (the environment's), then SPARK_HOME's, then the first on PATH.

    Raises:
        InstallationError: it is nowhere.
    """
    folders = [Path(sys.executable).parent]
    if environ.get("SPARK_HOME"):
        folders.append(Path(environ["SPARK_HOME"]) / "bin")
    for folder in folders:
        if os.access(folder / "spark-submit", os.X_OK):
            return str(folder / "spark-submit")
    found = shutil.which("spark-submit", path=environ.get("PATH"))
    if found is None:
        raise InstallationError(
            "command",
            "spark-submit",
            expected="one beside this Python, in SPARK_HOME or on PATH",
            got="none",
            hint="run `pip install pyspark`, or set SPARK_HOME to a Spark folder",
        )
    return found
