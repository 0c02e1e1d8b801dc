"""Run the integration tests on every release of the table and write down what happened.

    python3 servers/release_table.py                  all of them, docs/brokers.rst is rewritten
    python3 servers/release_table.py 0.8.0 4.4.0      these only, shown and not written
    python3 servers/release_table.py --write 4.4.0    these only, their rows are written anew
    python3 servers/release_table.py --jobs 4         four releases at a time; the tests mostly wait
    python3 servers/release_table.py --embedded       on embedded brokers that are these releases
    python3 servers/release_table.py --write --columns TLS,SCRAM 2.8.2 4.4.0
                                                      these columns only, the others stay
    python3 servers/release_table.py --render         nothing is run: the columns of today

Owns two tables of docs/brokers.rst, that of real brokers between ``.. BEGIN release-table`` and
``.. END release-table``, that of embedded ones between markers of their own: a row for each release
of the sets "default" and "table", a column for each file of tests, and for what the marker
``column`` of a test names. A cell is filled from pytest's own report of one run; nothing is typed
in, and what was not run since there is the column says so. A row is written when its release is
done, so that a run that was broken off goes on with ``--write`` and the releases it did not reach.
Run it with a Python that has the package, its test requirements, and gssapi. A release takes some
minutes.
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
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Dict, Iterable, List, Optional, Sequence
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
    'test_patched': 'whole programs',
    'test_readme': 'whole programs',
    'test_kafka_producer': 'KafkaProducer',
    'test_pool': 'KafkaProducer',
    'test_chaos': 'KafkaProducer',
    'test_transactions': 'transactions',
    'test_consumer_reading': 'KafkaConsumer',
    'test_consumer_records': 'KafkaConsumer',
    'test_consumer_offsets': 'KafkaConsumer',
    'test_consumer_clusters': 'KafkaConsumer',
    'test_consumer_bad_input': 'KafkaConsumer',
    'test_consumer_permissions': 'TLS',
    'test_bounded_reader': 'KafkaConsumer',
    'test_consumer_groups': 'groups',
    'test_consumer_membership': 'groups',
    'test_chaos_groups': 'groups',
    'test_commits_in_rebalances': 'groups',
    'test_consumer_848': 'KIP-848',
    'test_mixed_groups': 'mixed groups',
    'test_exactly_once': 'transactions consumed',
    'test_evented': 'evented client',
    'test_documented_1_2': 'documented examples',
    'test_documented_consumer_1_2': 'documented examples',
    'test_security': 'TLS',
    'test_security_evented': 'TLS',
    'test_secured_producer': 'TLS',
}
# Column of tests that are marked with it -> the files that have some.
_SECURED = (
    'test_security',
    'test_security_evented',
    'test_secured_producer',
    'test_consumer_permissions',
)
ASSIGNORS = ('range', 'roundrobin', 'sticky', 'cooperative-sticky')
MARKED = {
    'transactions': ('test_secured_producer', 'test_transactions'),
    'transactions consumed': ('test_consumer_records', 'test_exactly_once'),
    **{'group %s' % name: ('test_consumer_groups',) for name in ASSIGNORS},
    **dict.fromkeys(('PLAIN', 'SCRAM', 'OAUTHBEARER', 'GSSAPI'), _SECURED),
}
# About the embedded broker itself, not about the clients.
NOT_COUNTED = {'test_differential', 'test_foreign_clients', 'test_secured_foreign_clients'}
TITLES = list(dict.fromkeys([*COLUMN.values(), *MARKED]))
NOT_RUN = 'not run'

Row = Dict[str, Counter]


def files_of(titles: Iterable[str]) -> List[str]:
    """Return the files of tests that some columns count."""
    wanted = set(titles)
    marked = {name for title in wanted for name in MARKED.get(title, ())}
    return [name for name, title in COLUMN.items() if title in wanted or name in marked]


def run(release: Release, kind: str = REAL, titles: Sequence[str] = tuple(TITLES)) -> Row:
    """Run the tests of some columns on a release; return the outcomes, from pytest's report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / 'report.xml'
        command = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider']
        command += ['--junitxml', str(report)]
        done = subprocess.run(
            [*command, *('test/integration/%s.py' % name for name in files_of(titles))],
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
        row = read(ElementTree.parse(str(report)).getroot())
        return {title: row[title] for title in titles}


def read(report: ElementTree.Element) -> Row:
    """Return column -> how many tests passed, failed, and were skipped, of a JUnit report."""
    row: Row = {title: Counter() for title in TITLES}
    outcomes: Dict[tuple, str] = {}
    columns: Dict[tuple, str] = {}
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
        for each in case.iterfind("properties/property[@name='column']"):
            columns[key] = str(each.get('value'))
    for key, outcome in outcomes.items():
        row[columns.get(key) or COLUMN[key[0]]][outcome] += 1
    return row


def cell(counts: Optional[Counter]) -> str:
    """Return what a cell says: the number that passed, and loudly any that did not."""
    if counts is None:
        return NOT_RUN
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
    """Return the rows of a table, as far as its columns are of today and were run."""
    if ':header-rows: 1' not in table:
        return {}
    lines = list(
        csv.reader(
            map(str.strip, table.split(':header-rows: 1')[1].splitlines()), skipinitialspace=True
        )
    )
    cells = [line for line in lines if line]
    titles = cells[0][1:]
    return {
        name: {
            title: counts_of(text)
            for title, text in zip(titles, texts)
            if title in TITLES and text != NOT_RUN
        }
        for name, *texts in cells[1:]
    }


def render(rows: Dict[str, Row], note: str) -> str:
    """Return the table as reStructuredText, with a line on the run above it."""
    lines = ['', note, '', '.. csv-table::', '   :header-rows: 1', '']
    lines.append('   ' + ', '.join(['release', *TITLES]))
    for release, row in rows.items():
        texts = ['"%s"' % cell(row.get(title)) for title in TITLES]
        lines.append('   ' + ', '.join([release, *texts]))
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


def merged(old: Dict[str, Row], new: Dict[str, Row]) -> Dict[str, Row]:
    """Return rows with their new cells in place of the old ones, in the order of the table."""
    return {
        release.name: {**old.get(release.name, {}), **new.get(release.name, {})}
        for release in chosen('table')
        if release.name in old or release.name in new
    }


def render_again(kind: str) -> int:
    """Write the table with the columns of today, and what is known of them."""
    page = PAGE.read_text(encoding='utf-8')
    old = table_of(page, kind)
    note = next(line for line in old.splitlines() if line)
    PAGE.write_text(replace(page, render(rows_of(old), note), kind), encoding='utf-8')
    return 0


def write(rows: Dict[str, Row], kind: str, titles: Sequence[str]) -> None:
    """Put rows into the page in place of its own; the other rows and columns stay."""
    page = PAGE.read_text(encoding='utf-8')
    both = merged(rows_of(table_of(page, kind)), rows)
    note = note_of(both, kind)
    if list(titles) != TITLES:
        note = '%s The columns %s were run last.' % (note, ', '.join(titles))
    PAGE.write_text(replace(page, render(both, note), kind), encoding='utf-8')


def main(words: List[str]) -> int:
    """Run what the words name (none: the whole table); the exit code is 1 when anything failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('releases', nargs='*')
    parser.add_argument('--write', action='store_true', help='write the rows of the named ones')
    parser.add_argument('--jobs', type=int, default=1, help='how many releases at a time')
    parser.add_argument('--embedded', action='store_true', help='on embedded brokers')
    parser.add_argument('--columns', default=','.join(TITLES), help='only these, with commas')
    parser.add_argument('--render', action='store_true', help='run nothing')
    options = parser.parse_args(words)
    kind = EMBEDDED if options.embedded else REAL
    titles = options.columns.split(',')
    unknown = set(titles) - set(TITLES)
    if unknown:
        raise SystemExit('no column %s, but %s' % (', '.join(unknown), ', '.join(TITLES)))
    if options.render:
        return render_again(kind)
    releases = chosen(' '.join(options.releases) or 'table')
    for reason in filter(None, map(problem, releases if kind == REAL else [])):
        raise SystemExit(reason)
    rows: Dict[str, Row] = {}
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(run, release, kind, titles): release for release in releases}
        for done in as_completed(running):
            rows[running[done].name] = done.result()
            if options.write or not options.releases:
                write(rows, kind, titles)
    print(render(merged({}, rows), note_of(rows, kind)))
    failed = any(
        counts['failed'] or counts['skipped'] for row in rows.values() for counts in row.values()
    )
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
