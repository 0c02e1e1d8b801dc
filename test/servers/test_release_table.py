"""The table of releases: what a cell says, and that the page has a row for every release."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import pytest

from servers import release_table
from servers.releases import chosen

REPORT = ElementTree.fromstring(
    """
    <testsuites><testsuite>
      <testcase classname="test.integration.test_client" name="good[1]"/>
      <testcase classname="test.integration.test_client" name="bad[1]"><failure/></testcase>
      <testcase classname="test.integration.test_client" name="leaks[1]"/>
      <testcase classname="test.integration.test_client" name="leaks[1]"><error/></testcase>
      <testcase classname="test.integration.test_readme" name="late[1]"><skipped/></testcase>
      <testcase classname="test.integration.test_program" name="good[1]"/>
      <testcase classname="test.integration.test_security" name="tls[1]"/>
      <testcase classname="test.integration.test_security" name="login[1-PLAIN]">
        <properties><property name="column" value="PLAIN"/></properties>
      </testcase>
    </testsuite></testsuites>
    """
)


def test_a_test_that_fails_in_its_clean_up_has_failed():
    row = release_table.read(REPORT)
    assert row['KafkaClient'] == Counter(passed=1, failed=2)


def test_files_of_one_column_are_counted_together():
    assert release_table.read(REPORT)['whole programs'] == Counter(passed=1, skipped=1)


@pytest.mark.parametrize(
    'counts, text',
    [
        (Counter(passed=3), '3'),
        (Counter(passed=3, failed=1), '3, **1 failed**'),
        (Counter(failed=1, skipped=2), '**1 failed**, **2 skipped**'),
        (Counter(), '–'),
    ],
)
def test_a_cell_hides_nothing(counts, text):
    assert release_table.cell(counts) == text


def test_the_table_goes_between_its_markers():
    table = release_table.render({'0.8.0': release_table.read(REPORT)}, 'A note.')
    begin, end = release_table.MARKERS['embedded']
    page = ''.join(release_table.MARKERS['real']) + begin + 'old\n' + end + 'below\n'
    done = release_table.replace(page, table, 'embedded')
    assert done == page.replace('old\n', table)
    assert release_table.replace(done, table, 'embedded') == done
    assert release_table.table_of(done, 'embedded') == table
    assert release_table.table_of(done) == ''


def test_rows_are_read_back_from_the_page():
    rows = {'0.8.0': release_table.read(REPORT), '4.4.0': release_table.read(REPORT)}
    table = release_table.render(rows, 'A note.')
    assert release_table.rows_of(table) == rows
    assert release_table.rows_of('') == {}


def test_cells_of_another_column_are_dropped_and_new_ones_were_not_run():
    rows = {'0.8.0': release_table.read(REPORT)}
    table = release_table.render(rows, 'A note.').replace('KafkaClient', 'another title')
    (row,) = release_table.rows_of(table).values()
    assert row == {name: each for name, each in rows['0.8.0'].items() if name != 'KafkaClient'}
    again = release_table.render({'0.8.0': row}, 'A note.')
    assert '"not run"' in again and release_table.rows_of(again) == {'0.8.0': row}


def test_a_marker_says_which_column_counts_a_test():
    row = release_table.read(REPORT)
    assert row['PLAIN'] == row['TLS'] == Counter(passed=1)


def test_only_the_files_of_the_wanted_columns_are_run():
    assert release_table.files_of(['versions']) == ['test_versions']
    assert release_table.files_of(['transactions'])[0] == 'test_transactions'
    assert set(release_table.files_of(['GSSAPI'])) == set(release_table.MARKED['GSSAPI'])
    assert set(release_table.files_of(release_table.TITLES)) == set(release_table.COLUMN)


def test_columns_that_were_run_replace_those_that_were_there():
    old = {'0.8.0': {'TLS': Counter(passed=1)}, '4.4.0': {'TLS': Counter(), 'SCRAM': Counter()}}
    new = {'4.4.0': {'TLS': Counter(passed=3)}, '2.8.2': {'TLS': Counter(passed=2)}}
    assert list(release_table.merged(old, new).items()) == [
        ('0.8.0', {'TLS': Counter(passed=1)}),
        ('2.8.2', {'TLS': Counter(passed=2)}),
        ('4.4.0', {'TLS': Counter(passed=3), 'SCRAM': Counter()}),
    ]


def test_a_row_is_written_when_its_release_is_done(monkeypatch, tmp_path):
    def run(release, kind, titles):
        if release.name == '4.4.0':
            raise TimeoutError('broken off')
        return {title: Counter(passed=7) for title in titles}

    table = release_table.render({'4.4.0': release_table.read(REPORT)}, 'A note.')
    begin, end = release_table.MARKERS['embedded']
    page = tmp_path / 'brokers.rst'
    page.write_text(begin + table + end, encoding='utf-8')
    monkeypatch.setattr(release_table, 'run', run)
    monkeypatch.setattr(release_table, 'PAGE', page)
    with pytest.raises(TimeoutError, match='broken off'):
        release_table.main(['--embedded', '--write', '0.8.0', '4.4.0'])
    rows = release_table.rows_of(release_table.table_of(page.read_text('utf-8'), 'embedded'))
    assert rows['0.8.0'] == dict.fromkeys(release_table.TITLES, Counter(passed=7))
    assert rows['4.4.0'] == release_table.read(REPORT)


def test_every_file_of_integration_tests_has_a_column():
    folder = release_table.ROOT / 'test' / 'integration'
    files = {path.stem for path in folder.glob('test_*.py')}
    assert files == set(release_table.COLUMN) | release_table.NOT_COUNTED


@pytest.mark.parametrize('kind', ['real', 'embedded'])
def test_the_page_has_a_row_for_every_release_and_the_columns_of_today(kind):
    table = release_table.table_of(release_table.PAGE.read_text(encoding='utf-8'), kind)
    rows = [line.strip().split(', ')[0] for line in table.splitlines() if '"' in line]
    assert rows == [release.name for release in chosen('table')]
    assert ', '.join(['release', *release_table.TITLES]) in table
