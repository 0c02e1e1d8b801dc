"""Fetch Spark's own Kafka connector, the judge of ``kafka.spark``, into .cache/spark-jars.

    python3 servers/spark_jars.py          for PySpark 4.3; prints the jars, with commas between
    python3 servers/spark_jars.py 4.0      for PySpark 4.0

Owns which jars those are and where they lie; ``spark.jars`` takes the line as it is printed. Maven
fetches them. What is there already stays. The jars of a release appear all together or not at all.
Each is named with its version and without what it depends on: its parent pom names a repository
that need not be reachable, and all else is in PySpark. Standard library only.

Not every release of the connector can be put together: 4.3.0 was not published when this was
written, and of the token provider after 3.5.4 only 4.0.0 was. So PySpark 4.3 is judged by the
connector of 4.2.0 with the token provider of 4.0.0, which only delegation tokens need.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / '.cache' / 'spark-jars'
MAVEN_SECONDS = 300

#: By the first two numbers of PySpark: its connector, in full.
JARS: Dict[str, Tuple[str, ...]] = {
    '4.3': (
        'org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0',
        'org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0',
        'org.apache.kafka:kafka-clients:3.9.2',
        'org.apache.commons:commons-pool2:2.13.1',
    ),
    '4.0': (
        'org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0',
        'org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0',
        'org.apache.kafka:kafka-clients:3.9.0',
        'org.apache.commons:commons-pool2:2.12.0',
    ),
}


class JarsError(RuntimeError):
    """Maven did not bring the jars; the text holds its errors."""


def problem(pyspark: str = '4.3') -> Optional[str]:
    """Return why the jars are not here and cannot be fetched, in one line, or None."""
    if pyspark not in JARS:
        return 'no connector is known for PySpark %s: there are %s' % (pyspark, ', '.join(JARS))
    if not (FOLDER / pyspark).is_dir() and shutil.which('mvn') is None:
        return 'Maven is missing: it fetches the connector of Spark'
    return None


def jars(pyspark: str = '4.3') -> List[Path]:
    """Return the jars for a PySpark, fetched if need be. JarsError where Maven brings them not."""
    folder = FOLDER / pyspark
    names = ['%s-%s.jar' % (each.split(':')[1], each.split(':')[2]) for each in JARS[pyspark]]
    found = [folder / name for name in names]
    if not all(path.is_file() for path in found):
        _fetch(pyspark, folder)
    return found


def _fetch(pyspark: str, folder: Path) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=str(FOLDER), prefix='partial-') as name:
        partial = Path(name)
        (partial / 'pom.xml').write_text(_pom(JARS[pyspark]))
        target = partial / 'jars'
        command = ['mvn', '--batch-mode', '--file', str(partial / 'pom.xml')]
        command += ['dependency:copy-dependencies', '-DoutputDirectory=%s' % target]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=MAVEN_SECONDS,
            check=False,
        )
        if done.returncode or len(list(target.glob('*.jar'))) != len(JARS[pyspark]):
            lines = done.stdout.decode(errors='replace').splitlines()
            errors = [line for line in lines if line.startswith('[ERROR]')] or lines
            raise JarsError('\n'.join(errors[-20:]))
        if folder.is_dir():  # of other versions, before the table changed
            shutil.rmtree(str(folder))
        try:
            os.rename(str(target), str(folder))
        except OSError:
            if not folder.is_dir():  # else another program was faster
                raise


def _pom(jars: Sequence[str]) -> str:
    lines = [
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    ]
    lines += ['<groupId>kafka-evergreen</groupId><artifactId>spark</artifactId>']
    lines += ['<version>1</version><dependencies>']
    for jar in jars:
        group, artifact, version = jar.split(':')
        lines.append('<dependency><groupId>%s</groupId>' % group)
        lines.append('<artifactId>%s</artifactId><version>%s</version>' % (artifact, version))
        lines.append('<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId>')
        lines.append('</exclusion></exclusions></dependency>')
    return '\n'.join([*lines, '</dependencies></project>', ''])


def main(arguments: Sequence[str]) -> int:
    """Fetch the jars, print them, and return the exit code."""
    pyspark = arguments[0] if arguments else '4.3'
    reason = problem(pyspark)
    if reason is None:
        try:
            print(','.join(map(str, jars(pyspark))))
            return 0
        except JarsError as error:
            reason = str(error)
    print(reason, file=sys.stderr)
    return 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
