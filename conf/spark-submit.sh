#!/usr/bin/env bash
# The spark-submit of a virtual environment, for shells in which that environment is not active: Spark's own script
# looks for pyspark with the first python3 on PATH. `make` copies this file over .venv/bin/spark-submit.
# SPARK_HOME, PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON that the user has set are left alone.
set -eu

self=${BASH_SOURCE[0]}
while [ -L "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname "$self")/$target ;;
  esac
done
bin=$(CDPATH='' cd -P "$(dirname "$self")" && pwd)

if [ -z "${SPARK_HOME:-}" ]; then
  find_pyspark='import importlib.util as u; s = u.find_spec("pyspark"); print(s.submodule_search_locations[0] if s else "")'
  SPARK_HOME=$("$bin/python" -I -c "$find_pyspark")
  if [ -z "$SPARK_HOME" ]; then
    echo "[INSTALLATION_UNSUITABLE] package \`pyspark\`: expected in $bin/.., got none. Hint: run \`make setup\`." >&2
    exit 4
  fi
  export SPARK_HOME
fi

# In cluster mode the driver runs on another machine, where a path of this one means nothing.
case " $* " in
  *" --deploy-mode cluster "* | *" --deploy-mode=cluster "* | *"spark.submit.deployMode=cluster"*) ;;
  *)
    export PYSPARK_PYTHON="${PYSPARK_PYTHON:-$bin/python}"
    export PYSPARK_DRIVER_PYTHON="${PYSPARK_DRIVER_PYTHON:-$PYSPARK_PYTHON}"
    ;;
esac

exec "$SPARK_HOME/bin/spark-submit" "$@"
