"""The Apache Kafka releases that this folder can start, and what this machine lacks for one.

Owns: reading releases.txt, the paths of a release, the choice by ``KAFKA_VERSION`` and
``KAFKA_BROKER``, and the reason that is shown where a real broker cannot run. Does not own:
fetching (build_integration.sh), starting (:mod:`servers.cluster`). Standard library only:
servers/run.py uses it before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

SERVERS = Path(__file__).resolve().parent
LOWEST_JAVA = 17
REAL, EMBEDDED = 'real', 'embedded'
TABLE = ('default', 'embedded')
SETS = (*TABLE, 'more')


class Release(NamedTuple):
    """One row of releases.txt: the release's number, and the set that it belongs to."""

    name: str
    set: str

    @property
    def version(self) -> Tuple[int, ...]:
        """The number as integers, for comparisons: ``(0, 8, 2, 2)``."""
        return tuple(int(part) for part in self.name.split('.'))

    @property
    def libs(self) -> Path:
        """The folder of its jars."""
        return SERVERS / self.name / 'kafka-bin' / 'libs'

    @property
    def resources(self) -> Path:
        """The folder of its configuration templates."""
        return SERVERS / self.name / 'resources'

    @property
    def has_zookeeper(self) -> bool:
        """Whether ZooKeeper keeps its metadata (else KRaft)."""
        return (self.resources / 'zookeeper.properties').exists()

    def main_class(self, *names: str) -> Optional[str]:
        """Return the first of the dotted ``names`` that its jars hold, or None."""
        jars = sorted(self.libs.glob('kafka*.jar'))
        for name in names:
            entry = name.replace('.', '/') + '.class'
            for jar in jars:
                with zipfile.ZipFile(str(jar)) as content:
                    if entry in content.NameToInfo:
                        return name
        return None


def releases() -> Dict[str, Release]:
    """Return all rows of releases.txt by name, oldest first."""
    found = {}
    for line in (SERVERS / 'releases.txt').read_text().splitlines():
        words = line.split('#')[0].split()
        if words:
            found[words[0]] = Release(words[0], words[1])
    return found


def chosen(words: Optional[str] = None) -> List[Release]:
    """Return the releases that ``words`` name, oldest first.

    Without words those of ``KAFKA_VERSION``, and without that the default set. Words as
    build_integration.sh takes them, with commas or blanks between: releases, the sets of
    releases.txt, ``table`` (``default`` and ``embedded``), ``all``. ValueError for any other word.
    """
    wanted = _words(words)
    every = releases()
    known = {*every, *SETS, 'table', 'all'}
    for word in wanted:
        if word not in known:
            raise ValueError('no release %r in servers/releases.txt: %s' % (word, ' '.join(every)))
    return [
        release
        for release in every.values()
        if 'all' in wanted
        or release.name in wanted
        or release.set in wanted
        or (release.set in TABLE and 'table' in wanted)
    ]


def are_named(words: Optional[str] = None) -> bool:
    """Return whether the words, those of :func:`chosen`, name a release, and not sets only."""
    return not set(releases()).isdisjoint(_words(words))


def _words(words: Optional[str]) -> List[str]:
    text = words or os.environ.get('KAFKA_VERSION') or 'default'
    return re.split(r'[,\s]+', text.strip())


def chosen_kind() -> str:
    """Return which brokers ``KAFKA_BROKER`` names: ``real``, the default, or ``embedded``.

    ValueError for any other word.
    """
    kind = os.environ.get('KAFKA_BROKER') or REAL
    if kind not in (REAL, EMBEDDED):
        raise ValueError('no kind of broker %r: there are %s and %s' % (kind, REAL, EMBEDDED))
    return kind


def java_problem() -> Optional[str]:
    """Return why no release can run here (no Java, too old a Java), or None."""
    java = shutil.which('java')
    if java is None:
        return 'Java is missing (a JDK, %d or later, on the PATH)' % LOWEST_JAVA
    told = subprocess.run(
        [java, '-version'],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=60,
    ).stdout.decode(errors='replace')
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found.group(1)) < LOWEST_JAVA:
        first = (told.splitlines() or ['no answer'])[0]
        return 'Java %d or later is needed; `java -version` says: %s' % (LOWEST_JAVA, first)
    return None


def problem(release: Release) -> Optional[str]:
    """Return why ``release`` cannot be started here, in one line, or None when it can."""
    if not release.libs.is_dir():
        if shutil.which('mvn') is None:
            return 'Maven is missing, and with it the jars of Apache Kafka %s' % release.name
        return 'servers/%s/kafka-bin is missing: run ./build_integration.sh %s' % (
            release.name,
            release.name,
        )
    return java_problem()
