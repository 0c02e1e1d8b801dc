"""Apache Kafka's own description of its messages, for the comparison in test_against_upstream.py.

Every kafka-clients jar carries it as JSON with comments. Two jars are needed: 3.9.2 describes what
4.x dropped, 4.4.0 what came since. They are fetched with Maven into .cache/kafka-clients/, once,
and never shipped. Run as a program (``python -m test.protocol.upstream``) to fetch them.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(ROOT, '.cache', 'kafka-clients')
RELEASES = ('3.9.2', '4.4.0')
FETCH_SECONDS = 300


def jar(release):
    """Return where the jar of a release lies once it was fetched."""
    return os.path.join(CACHE, 'kafka-clients-%s.jar' % release)


def missing():
    """Return why the descriptions can't be read, or None."""
    absent = [release for release in RELEASES if not os.path.exists(jar(release))]
    if not absent:
        return None
    if shutil.which('mvn') is None:
        return 'kafka-clients %s: not in .cache/, and no Maven to fetch it' % ', '.join(absent)
    for release in absent:
        problem = fetch(release)
        if problem:
            return problem
    return None


def fetch(release):
    """Fetch a jar with Maven; return what went wrong, or None."""
    os.makedirs(CACHE, exist_ok=True)
    folder = tempfile.mkdtemp(dir=CACHE)  # so that nobody meets half a jar
    plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy'
    command = [
        *('mvn', '-q', '-B', plugin, '-DoutputDirectory=' + folder),
        '-Dartifact=org.apache.kafka:kafka-clients:' + release,
    ]
    try:
        subprocess.run(
            command,
            check=True,
            timeout=FETCH_SECONDS,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=CACHE,
        )
        os.replace(os.path.join(folder, os.path.basename(jar(release))), jar(release))
    except (OSError, subprocess.SubprocessError) as error:
        return 'Maven could not fetch kafka-clients %s: %s' % (release, error)
    finally:
        shutil.rmtree(folder)
    return None


@functools.lru_cache(maxsize=None)
def descriptions(release):
    """Return the descriptions of a release: parsed JSON by message name."""
    found = {}
    with zipfile.ZipFile(jar(release)) as archive:
        for name in archive.namelist():
            if re.match(r'^common/message/\w+\.json$', name):
                text = archive.read(name).decode('utf-8')
                # Comments stand on lines of their own, or behind what JSON needs.
                text = re.sub(r'(?m)(^|\s)//[^"\n]*("[^"\n]*"[^"\n]*)*$', '', text)
                parsed = json.loads(text)
                found[parsed['name']] = parsed
    return found


def versions(text):
    """Return a range of versions as first and last, the last one endless for '3+'."""
    if text in (None, 'none'):
        return (1, 0)
    first, is_open, last = re.match(r'^(\d+)(?:(\+)|-(\d+))?$', text).groups()
    return (int(first), 32767 if is_open else int(last or first))


def includes(text, version):
    """Tell whether a range of versions has a version in it."""
    first, last = versions(text)
    return first <= version <= last


if __name__ == '__main__':
    raise SystemExit(missing())
