"""Run the integration tests on every release of the table and write down what happened.

    python3 servers/release_table.py                  all of them, docs/brokers.rst is rewritten
    python3 servers/release_table.py 0.8.0 4.4.0      these only, shown and not written
    python3 servers/release_table.py --write 4.4.0    these only, their rows are written anew
    python3 servers/release_table.py --jobs 4         four releases at a time; the tests mostly wait

Owns the table between ``.. BEGIN release-table`` and ``.. END release-table`` of docs/brokers.rst:
a row for each release of the sets "default" and "table", a column for each file of tests. A cell is
filled from pytest's own report of one run; nothing is typed in. Run it with a Python that has the
package and its test requirements. A release takes some minutes.
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

from servers.releases import Release, chosen, problem  # noqa: E402  (after the path)

PAGE = ROOT / 'docs' / 'brokers.rst'
BEGIN, END = '.. BEGIN release-table\n', '.. END release-table\n'
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
TITLES = list(dict.fromkeys(COLUMN.values()))

Row = Dict[str, Counter]


def run(release: Release) -> Row:
    """Run the tests on one release and return the outcomes by column, from pytest's report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / 'report.xml'
        command = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider']
        command += ['--junitxml', str(report)]
        done = subprocess.run(
            [*command, *('test/integration/%s.py' % name for name in COLUMN)],
            cwd=str(ROOT),
            env={**os.environ, 'KAFKA_VERSION': release.name},
            timeout=SECONDS_PER_RELEASE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said = done.stdout.decode('utf-8', 'replace')
        # All of it when something failed; whole releases follow each other, never lines.
        lines = said.splitlines()[-1:] if done.returncode == 0 else [said]
        print('=== Apache Kafka %s\n%s' % (release.name, '\n'.join(lines)), flush=True)
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


def rows_of(page: str) -> Dict[str, Row]:
    """Return the rows that a page shows; none when its columns are not those of today."""
    table = page.split(BEGIN)[1].split(END)[0]
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
    lines = [BEGIN.rstrip(), '', note, '', '.. csv-table::', '   :header-rows: 1', '']
    lines.append('   ' + ', '.join(['release', *TITLES]))
    for release, row in rows.items():
        lines.append('   ' + ', '.join([release, *('"%s"' % cell(row[title]) for title in TITLES)]))
    return '\n'.join([*lines, '', END])


def replace(page: str, table: str) -> str:
    """Return the page with the table between its markers."""
    before, rest = page.split(BEGIN)
    return before + table + rest.split(END)[1]


def main(words: List[str]) -> int:
    """Run what the words name (none: the whole table); the exit code is 1 when anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('releases', nargs='*')
    parser.add_argument('--write', action='store_true', help='write the rows of the named ones')
    parser.add_argument('--jobs', type=int, default=1, help='how many releases at a time')
    options = parser.parse_args(words)
    releases = chosen(' '.join(options.releases) or 'table')
    for reason in filter(None, map(problem, releases)):
        raise SystemExit(reason)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = {release.name: row for release, row in zip(releases, pool.map(run, releases))}
    failed = any(
        counts['failed'] or counts['skipped'] for row in rows.values() for counts in row.values()
    )
    page = PAGE.read_text(encoding='utf-8')
    if options.write:
        shown = {**rows_of(page), **rows}
        rows = {r.name: shown[r.name] for r in chosen('table') if r.name in shown}
    java = subprocess.run(['java', '-version'], stderr=subprocess.PIPE, check=True).stderr.decode()
    total = sum((counts for row in rows.values() for counts in row.values()), Counter())
    note = 'Run of %s: Python %s, Java %s, %d tests passed, %d failed, %d skipped.' % (
        datetime.date.today(),
        platform.python_version(),
        java.split('"')[1],
        total['passed'],
        total['failed'],
        total['skipped'],
    )
    table = render(rows, note)
    print(table)
    if options.write or not options.releases:
        PAGE.write_text(replace(page, table), encoding='utf-8')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
