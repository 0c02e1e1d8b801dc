"""Each file is in one list, and the lists take about as long; what is measured is what is read."""

from __future__ import annotations

import os
import random
import xml.etree.ElementTree
from types import SimpleNamespace

import pytest

from servers.releases import EMBEDDED, REAL
from test import conftest as top_conftest
from test import dealing, run
from test.dealing import Times
from test.integration import conftest
from test.sources import ROOT


class Item:
    """What the hooks look at: the file of a test, its name, its cluster, and its markers."""

    def __init__(self, file, *markers, **params):
        self.nodeid, self.markers = '%s::test' % file, markers
        self.user_properties = []
        if params:
            self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name):
        return name if name in self.markers else None

    def iter_markers(self, name):
        return iter(())


def on_cluster(file, release, count=1, kind=REAL, markers=()):
    setting = conftest.Setting(SimpleNamespace(name=release, version=()), count, kind)
    return Item(file, 'integration', *markers, cluster=setting)


# --- dealing ------------------------------------------------------------------------------------


def test_files_are_dealt_by_how_long_they_take():
    times = Times({('without', 'c.py', ''): 9.0}, {'without': 2.0})
    lists = dealing.deal(['a.py', 'b.py', 'c.py', 'd.py'], ['without'], 9.0, times)
    assert lists == [['c.py'], ['a.py', 'b.py', 'd.py']]


def test_every_file_is_in_one_list_whatever_the_table_knows():
    chance = random.Random(1)
    for _ in range(50):
        files = ['%d.py' % number for number in range(chance.randint(1, 60))]
        clusters = [chance.choice('abcd') for _ in files]
        known = chance.sample(range(len(files)), len(files) // 2)
        times = Times(
            {('real', files[at], clusters[at]): chance.expovariate(0.1) for at in known}, {}
        )
        lists = dealing.deal(files, ['real'], 20.0, times)
        assert sorted(file for each in lists for file in each) == sorted(files)
        loads = [sum(times.of(['real'], file) for file in each) for each in lists]
        longest = max(times.of(['real'], file) for file in files)
        assert max(loads) <= sum(loads) / len(loads) + longest


def test_a_cluster_is_started_in_as_few_processes_as_can_be():
    """Only one that takes longer than its share is divided; no process is idle."""
    names = {'4.4.0': 9, '4.4.0-x3': 3, '4.4.0-secured': 3}
    times = Times(
        {(REAL, '%s/%d.py' % (name, at), name): 1.0 for name in names for at in range(names[name])},
        {},
    )
    lists = dealing.deal([file for _, file, _ in times.files], [REAL], 5.0, times, '4.4.0')
    assert [len(each) for each in lists] == [5, 5, 5]
    clusters = [{file.split('/')[0] for file in each} for each in lists]
    assert sum(map(len, clusters)) <= 3 + 2


def test_a_file_has_other_times_on_other_releases_and_with_other_markers():
    times = Times(
        {
            (REAL, 'a.py', '4.4.0'): 1.0,
            (REAL, 'a.py', '4.4.0-x3'): 2.0,
            (REAL, 'a.py', '0.8.2.2'): 4.0,
            (REAL + '+', 'a.py', '4.4.0'): 8.0,
        },
        {},
    )
    assert times.of([REAL], 'a.py', '4.4.0') == 3.0
    assert times.of([REAL], 'a.py', '0.8.2.2') == 4.0
    assert times.of([REAL, REAL + '+'], 'a.py', '4.4.0') == 11.0
    assert times.cluster_of([REAL], 'a.py', '4.4.0') == '4.4.0-x3'


# --- which files --------------------------------------------------------------------------------


def test_files_are_found_by_folder():
    every = dealing.test_files('test')
    units = dealing.test_files('test', but=['test/integration'])
    assert 'test/test_dealing.py' in units and 'test/integration/test_chaos.py' not in units
    assert sorted(units + dealing.test_files('test/integration')) == every
    assert not [file for file in every if not os.path.exists(os.path.join(ROOT, file))]


def test_files_are_found_by_marker():
    marked = dealing.marked(dealing.test_files('test/simulation'), 'thorough')
    assert 'test/simulation/test_group_seeds.py' in marked
    assert 'test/simulation/test_clock.py' not in marked


def test_files_on_brokers_that_have_unit_tests_are_collected_for_them():
    """A file is left out only where all of its tests are on brokers."""
    files = dealing.test_files('test/integration')
    having = dealing.with_units(files)
    assert 'test/integration/test_chaos.py' in having
    for file in sorted(set(files) - set(having)):
        with open(os.path.join(ROOT, file), encoding='utf-8') as source:
            assert 'pytestmark = ' in source.read(), file


# --- the table ----------------------------------------------------------------------------------

RESULTS = """
<testsuites><testsuite tests="3">
<testcase name="a" time="8.5"><properties><property name="room" value="real t/a.py 4.4.0-x3"/>
</properties></testcase>
<testcase name="b" time="8.5"><properties><property name="column" value="groups"/>
<property name="room" value="real t/a.py 4.4.0-x3"/></properties></testcase>
<testcase name="c" time="1.5"><properties><property name="room" value="real t/b.py"/></properties>
</testcase></testsuite></testsuites>
"""


def test_what_was_measured_is_what_is_read(tmp_path):
    """Files that take long, a file of the others; steps that did not run stay as they were."""
    table = tmp_path / 'seconds.txt'
    table.write_text('spark 7 others\nspark 70 t/c.py\nreal 40 t/old.py 4.4.0\n')
    suite = xml.etree.ElementTree.fromstring(RESULTS)
    dealing.write(dealing.measured_in(suite), str(table))
    assert dealing.read(str(table)) == (
        {('real', 't/a.py', '4.4.0-x3'): 17.0, ('spark', 't/c.py', ''): 70.0},
        {'real': 1.5, 'spark': 7.0},
    )


def test_where_all_that_ran_takes_long_the_others_stay_as_they_were(tmp_path):
    table = tmp_path / 'seconds.txt'
    table.write_text('spark 7 others\n')
    dealing.write([('spark t/a.py', 12.0)], str(table))
    assert dealing.read(str(table)) == ({('spark', 't/a.py', ''): 12.0}, {'spark': 7.0})


@pytest.mark.parametrize(
    'item, room',
    [
        (on_cluster('t/a.py', '4.4.0', 3), 'real t/a.py 4.4.0-x3'),
        (on_cluster('t/a.py', '4.4.0', 3, markers=['thorough']), 'real+ t/a.py 4.4.0-x3'),
        (Item('t/a.py', 'integration'), 'real t/a.py'),
        (Item('t/b.py'), 'without t/b.py'),
        (Item('t/b.py', 'spark', 'thorough'), 'spark+ t/b.py'),
    ],
    ids=['three brokers', 'thorough', 'no release', 'without', 'spark'],
)
def test_the_results_of_a_test_name_its_room(item, room, monkeypatch):
    monkeypatch.setenv('KAFKA_BROKER', REAL)
    monkeypatch.delenv('KAFKA_TEST_RELEASES', raising=False)
    conftest.pytest_collection_modifyitems(None, [item])
    top_conftest.pytest_collection_modifyitems([item])
    assert item.user_properties == [('room', room)]


def test_secured_brokers_are_other_clusters():
    release = SimpleNamespace(name='4.4.0', version=(4, 4, 0))
    assert conftest._cluster_of(Item('a.py', 'integration', secured=release)) == '4.4.0-secured'
    assert conftest._cluster_of(on_cluster('a.py', '4.4.0', 3)) == '4.4.0-x3'


def test_kinds_of_brokers_have_times_of_their_own(monkeypatch):
    monkeypatch.delenv('KAFKA_TEST_RELEASES', raising=False)
    for kind in (REAL, EMBEDDED):
        monkeypatch.setenv('KAFKA_BROKER', kind)
        item = on_cluster('a.py', '4.4.0', kind=kind)
        conftest.pytest_collection_modifyitems(None, [item])
        assert item.user_properties[0][1].split()[0] == kind


def test_a_process_has_the_tests_of_its_releases(monkeypatch):
    """And of none, behind the comma; tests that are on no brokers are in each."""
    items = [on_cluster('a.py', name) for name in ('4.4.0', '0.8.2.2')]
    items += [Item('a.py', 'integration'), Item('a.py')]

    def kept(releases):
        monkeypatch.setenv('KAFKA_TEST_RELEASES', releases)
        found = list(items)
        hook = SimpleNamespace(pytest_deselected=lambda items: None)
        conftest.pytest_collection_modifyitems(SimpleNamespace(hook=hook), found)
        return [items.index(each) for each in found]

    assert kept('4.4.0') == [0, 3]
    assert kept('0.8.2.2,') == [1, 2, 3]


def test_the_table_names_files_that_there_are():
    times = dealing.read()
    assert set(times.others) >= {'real', 'embedded', 'spark', 'without'}
    missing = {file for _, file, _ in times.files if not os.path.exists(os.path.join(ROOT, file))}
    assert not missing, 'python3 test/run.py --all --write-seconds'


def test_ordinary_releases_are_of_the_sets_that_are_tested():
    for kind in (REAL, EMBEDDED):
        names = [each.name for each in run.chosen(run.default_set(kind, [REAL, EMBEDDED]))]
        assert set(run.ORDINARY[kind]) <= set(names)
