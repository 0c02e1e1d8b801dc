"""Run the integration tests on every release of the table and write down what happened.

    python3 servers/release_table.py                  all of them, docs/brokers.rst is rewritten
    python3 servers/release_table.py 0.8.0 4.4.0      these only, shown and not written
    python3 servers/release_table.py --write 4.4.0    these only, their rows are written anew
    python3 servers/release_table.py --jobs 4         four releases at a time; the tests mostly wait
    python3 servers/release_table.py --embedded       on embedded brokers that are these releases

Owns two tables of docs/brokers.rst, that of real brokers between ``.. BEGIN release-table`` and
``.. END release-table``, that of embedded ones between markers of their own: a row for each release
of the sets "default" and "table", a column for each file of tests. A cell is filled from pytest's
own report of one run; nothing is typed in. Run it with a Python that has the package and its test
requirements. A release takes some minutes.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Dict, List
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # run as a script: find the package

from servers.releases import EMBEDDED, REAL, Release, chosen, problem  # noqa: E402  (the path)

PAGE = ROOT / 'docs' / 'brokers.rst'
# What stands before and behind the table of each kind of broker.
MARKERS = {
    REAL: ('.. BEGIN release-table\n', '.. END release-table\n'),
    EMBEDDED: ('.. BEGIN embedded-table\n', '.. END embedded-table\n'),
}
SECONDS_PER_RELEASE = 3600

# File of tests in test/integration -> the column that counts it.
COLUMN = {
    'test_client': 'KafkaClient',
    'test_simple_client': 'SimpleClient',
    'test_connection': 'KafkaConnection',
    'test_producer': 'producers',
    'test_simple_consumer': 'SimpleConsumer',
    'test_multiprocess': 'MultiProcessConsumer',
    'test_kafka_consumer_09': 'KafkaConsumer 0.9.5',
    'test_documented_producers': 'documented examples',
    'test_documented_consumers': 'documented examples',
    'test_documented_kafka_consumer': 'documented examples',
    'test_three_brokers': 'three brokers',
    'test_failover': 'three brokers',
    'test_failover_figure': 'three brokers',
    'test_formats': 'codecs and formats',
    'test_versions': 'versions',
    'test_program': 'whole programs',
    'test_programs': 'whole programs',
    'test_readme': 'whole programs',
}
# About the embedded broker itself, not about the clients.
NOT_COUNTED = {'test_differential', 'test_foreign_clients', 'test_secured_foreign_clients'}
TITLES = list(dict.fromkeys(COLUMN.values()))

Row = Dict[str, Counter]


def run(release: Release, kind: str = REAL) -> Row:
    """Run the tests on one release and return the outcomes by column, from pytest's report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / 'report.xml'
        command = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider']
        command += ['--junitxml', str(report)]
        done = subprocess.run(
            [*command, *('test/integration/%s.py' % name for name in COLUMN)],
            cwd=str(ROOT),
            env={**os.environ, 'KAFKA_VERSION': release.name, 'KAFKA_BROKER': kind},
            timeout=SECONDS_PER_RELEASE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said = done.stdout.decode('utf-8', 'replace')
        # All of it when something failed; whole releases follow each other, never lines.
        lines = said.splitlines()[-1:] if done.returncode == 0 else [said]
        name = ('Apache Kafka %s' if kind == REAL else 'embedded Kafka %s') % release.name
        print('=== %s\n%s' % (name, '\n'.join(lines)), flush=True)
        return read(ElementTree.parse(str(report)).getroot())


def read(report: ElementTree.Element) -> Row:
    """Return column -> how many tests passed, failed, and were skipped, of a JUnit report."""
    row: Row = {title: Counter() for title in TITLES}
    outcomes: Dict[tuple, str] = {}
    for case in report.iter('testcase'):
        outcome = 'passed'
        if case.find('failure') is not None or case.find('error') is not None:
            outcome = 'failed'
        elif case.find('skipped') is not None:
            outcome = 'skipped'
        key = (case.get('classname', '').split('.')[-1], case.get('name'))
        # A test that passed and whose clean-up failed is reported twice.
        if outcomes.get(key) != 'failed':
            outcomes[key] = outcome
    for (module, _), outcome in outcomes.items():
        row[COLUMN[module]][outcome] += 1
    return row


def cell(counts: Counter) -> str:
    """Return what a cell says: the number that passed, and loudly any that did not."""
    words = [str(counts['passed'])] if counts['passed'] else []
    words += ['**%d %s**' % (counts[kind], kind) for kind in ('failed', 'skipped') if counts[kind]]
    return ', '.join(words) or '–'


def counts_of(text: str) -> Counter:
    """Return what a cell counts."""
    counts: Counter = Counter()
    for word in text.replace('*', '').replace('–', '').split(', '):
        if word:
            number, _, kind = word.partition(' ')
            counts[kind or 'passed'] += int(number)
    return counts


def table_of(page: str, kind: str = REAL) -> str:
    """Return what stands between the markers of a page."""
    begin, end = MARKERS[kind]
    return page.split(begin)[1].split(end)[0]


def rows_of(table: str) -> Dict[str, Row]:
    """Return the rows of a table; none when its columns are not those of today."""
    if ':header-rows: 1' not in table:
        return {}
    lines = list(
        csv.reader(
            map(str.strip, table.split(':header-rows: 1')[1].splitlines()), skipinitialspace=True
        )
    )
    cells = [line for line in lines if line]
    if cells[0][1:] != TITLES:
        return {}
    return {name: dict(zip(TITLES, map(counts_of, texts))) for name, *texts in cells[1:]}


def render(rows: Dict[str, Row], note: str) -> str:
    """Return the table as reStructuredText, with a line on the run above it."""
    lines = ['', note, '', '.. csv-table::', '   :header-rows: 1', '']
    lines.append('   ' + ', '.join(['release', *TITLES]))
    for release, row in rows.items():
        lines.append('   ' + ', '.join([release, *('"%s"' % cell(row[title]) for title in TITLES)]))
    return '\n'.join([*lines, '', ''])


def replace(page: str, table: str, kind: str = REAL) -> str:
    """Return the page with the table between its markers."""
    begin, end = MARKERS[kind]
    before, rest = page.split(begin)
    return before + begin + table + end + rest.split(end)[1]


def note_of(rows: Dict[str, Row], kind: str) -> str:
    """Return a line on the run: when, with what, and how many tests came out how."""
    total = sum((counts for row in rows.values() for counts in row.values()), Counter())
    used = 'Python %s' % platform.python_version()
    if kind == REAL:
        said = subprocess.run(['java', '-version'], stderr=subprocess.PIPE, check=True).stderr
        used += ', Java %s' % said.decode().split('"')[1]
    return 'Run of %s: %s, %d tests passed, %d failed, %d skipped.' % (
        datetime.date.today(),
        used,
        total['passed'],
        total['failed'],
        total['skipped'],
    )


def main(words: List[str]) -> int:
    """Run what the words name (none: the whole table); the exit code is 1 when anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('releases', nargs='*')
    parser.add_argument('--write', action='store_true', help='write the rows of the named ones')
    parser.add_argument('--jobs', type=int, default=1, help='how many releases at a time')
    parser.add_argument('--embedded', action='store_true', help='on embedded brokers')
    options = parser.parse_args(words)
    kind = EMBEDDED if options.embedded else REAL
    releases = chosen(' '.join(options.releases) or 'table')
    for reason in filter(None, map(problem, releases if kind == REAL else [])):
        raise SystemExit(reason)
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda release: run(release, kind), releases)
        rows = {release.name: row for release, row in zip(releases, outcomes)}
    failed = any(
        counts['failed'] or counts['skipped'] for row in rows.values() for counts in row.values()
    )
    page = PAGE.read_text(encoding='utf-8')
    if options.write:
        shown = {**rows_of(table_of(page, kind)), **rows}
        rows = {r.name: shown[r.name] for r in chosen('table') if r.name in shown}
    table = render(rows, note_of(rows, kind))
    print(table)
    if options.write or not options.releases:
        PAGE.write_text(replace(page, table, kind), encoding='utf-8')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
