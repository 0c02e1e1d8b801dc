"""Each test is in one part, and the parts take about as long; what is measured is what is read."""

from __future__ import annotations

import collections
import os
import random
import xml.etree.ElementTree
from types import SimpleNamespace

import pytest

from servers.releases import EMBEDDED, REAL
from test import conftest as top_conftest
from test import dealing
from test.dealing import Room, Times
from test.integration import conftest
from test.sources import ROOT


class Item:
    """What the division looks at: the file of a test, its name, its cluster, and its markers."""

    def __init__(self, file, *markers, name='test', **params):
        self.nodeid, self.name, self.markers = '%s::%s' % (file, name), name, markers
        self.user_properties = []
        if params:
            self.callspec = SimpleNamespace(params=params)

    @property
    def file(self):
        return self.nodeid.split('::')[0]

    def get_closest_marker(self, name):
        return name if name in self.markers else None

    def iter_markers(self, name):
        return iter(())


def on_cluster(file, release, count=1, kind=REAL, name='test'):
    setting = conftest.Setting(SimpleNamespace(name=release, version=()), count, kind)
    return Item(file, 'integration', name=name, cluster=setting)


@pytest.fixture
def parts_of(monkeypatch):
    """Return a function that gives what each part keeps of some items."""

    def deal(hook_of, items, parts, times):
        monkeypatch.setattr(dealing, 'read', lambda: times)
        found = []
        for number in range(1, parts + 1):
            monkeypatch.setenv('KAFKA_TEST_PART', '%d/%d' % (number, parts))
            kept, left_out = list(items), []
            hook = SimpleNamespace(pytest_deselected=lambda items, to=left_out: to.extend(items))
            hook_of.pytest_collection_modifyitems(SimpleNamespace(hook=hook), kept)
            assert sorted(map(id, kept + left_out)) == sorted(map(id, items))
            found.append(kept)
        return found

    return deal


NOTHING = Times({}, {})


def test_files_are_dealt_to_the_parts_by_how_long_they_take(parts_of):
    """Those of which nothing is known by how many tests they have."""
    items = [Item(name) for name in ('a.py', 'b.py', 'a.py', 'c.py', 'd.py', 'd.py', 'd.py')]
    times = Times({('without', 'c.py', ''): 9.0}, {'without': 2.0})
    parts = parts_of(top_conftest, items, 2, times)
    assert [{item.file for item in part} for part in parts] == [{'c.py', 'b.py'}, {'d.py', 'a.py'}]


def test_every_test_is_in_one_part_whatever_the_table_knows(parts_of):
    chance = random.Random(1)
    for _ in range(30):
        files = ['%d.py' % number for number in range(chance.randint(1, 30))]
        items = [Item(chance.choice(files), name='t%d' % n) for n in range(chance.randint(1, 200))]
        known = chance.sample(files, len(files) // 2)
        times = Times({('without', file, ''): chance.uniform(0, 99) for file in known}, {})
        kept = parts_of(top_conftest, items, 3, times)
        assert sorted(id(item) for part in kept for item in part) == sorted(map(id, items))
        homes = [{item.file for item in part} for part in kept]
        assert sum(map(len, homes)) == len(set.union(*homes))


def test_tests_that_may_be_apart_share_the_time_of_their_file(parts_of):
    items = [Item('seeds.py', 'apart', name='test[%d]' % n) for n in range(6)]
    items += [Item('long.py'), Item('a.py')]
    times = Times({('without', 'seeds.py', ''): 60.0, ('without', 'long.py', ''): 30.0}, {})
    parts = parts_of(top_conftest, items, 2, times)
    assert [len([each for each in part if each.file == 'seeds.py']) for part in parts] == [2, 4]


def test_tests_on_brokers_are_in_each_part_without_them(parts_of):
    """They are divided elsewhere."""
    items = [Item('on_brokers.py', 'integration')]
    assert parts_of(top_conftest, items, 2, NOTHING) == [items, items]


def test_tests_with_spark_have_a_time_of_their_own():
    assert top_conftest._room(Item('a.py', 'spark')).kind == 'spark'
    assert top_conftest._room(Item('a.py')).kind == 'without'


def test_a_cluster_is_started_in_as_few_parts_as_can_be(parts_of, monkeypatch):
    """Only one that takes longer than a part's share is divided, by files; no part is idle."""
    monkeypatch.setenv('KAFKA_BROKER', REAL)
    items = [
        on_cluster('%d.py' % number, release, name='test-%s' % release)
        for release, files in (('4.4.0', 9), ('0.8.0', 3), ('2.8.2', 3))
        for number in range(files)
    ]
    unit = Item('unit.py')
    parts = parts_of(conftest, [*items, unit], 3, Times({}, {REAL: 1.0}))
    assert all(part.pop() is unit for part in parts)  # divided elsewhere
    assert [len(part) for part in parts] == [5, 5, 5]
    clusters = [{item.callspec.params['cluster'].release.name for item in part} for part in parts]
    assert sum(map(len, clusters)) <= 3 + 2


def test_the_long_tests_of_one_cluster_are_no_part_of_their_own(parts_of, monkeypatch):
    """A file is divided by cluster, with the seconds that it takes on each."""
    monkeypatch.setenv('KAFKA_BROKER', REAL)
    names = ('chaos.py', 'failover.py', 'a.py', 'b.py')
    items = [on_cluster(name, '4.4.0', 3) for name in names] + [on_cluster('chaos.py', '2.8.2', 3)]
    times = Times({(REAL, 'chaos.py', '4.4.0-x3'): 300.0, (REAL, 'failover.py', '4.4.0-x3'): 200.0},
                  {REAL: 1.0})  # fmt: skip
    parts = parts_of(conftest, items, 2, times)
    assert [len(part) for part in parts] == [1, 4]


def test_secured_brokers_are_other_clusters():
    release = SimpleNamespace(name='4.4.0', version=(4, 4, 0))
    own = conftest._room(Item('a.py', 'integration', secured=release))
    assert own.cluster == '4.4.0-secured'
    assert conftest._room(on_cluster('a.py', '4.4.0', 3)).cluster == '4.4.0-x3'
    assert conftest._room(Item('a.py', 'integration')).cluster == ''


def test_kinds_of_brokers_have_times_of_their_own(monkeypatch):
    for kind in (REAL, EMBEDDED):
        monkeypatch.setenv('KAFKA_BROKER', kind)
        assert conftest._room(on_cluster('a.py', '4.4.0', kind=kind)).kind == kind


def test_parts_are_even():
    """The longest is no longer than the mean and the longest room, as of any list by length."""
    chance = random.Random(2)
    for _ in range(50):
        files = [Room('real', '%d.py' % n, chance.choice('abcd')) for n in range(60)]
        times = Times({room[:3]: chance.expovariate(0.1) for room in files}, {})
        rooms = dict.fromkeys(files, 1)
        lengths = dealing.lengths_of(rooms, times)
        loads = collections.Counter()
        for room, at in dealing.deal(rooms, 3, times).items():
            loads[at] += lengths[room]
        assert max(loads.values()) <= sum(loads.values()) / 3 + max(lengths.values())


# --- the table ----------------------------------------------------------------------------------

RESULTS = """
<testsuites><testsuite tests="3">
<testcase name="a" time="8.5"><properties><property name="room" value="real t/a.py 4.4.0-x3"/>
</properties></testcase>
<testcase name="b" time="8.5"><properties><property name="column" value="groups"/>
<property name="room" value="real t/a.py 4.4.0-x3"/></properties></testcase>
<testcase name="c" time="3.0"><properties><property name="room" value="real t/b.py"/></properties>
</testcase></testsuite></testsuites>
"""


def test_what_was_measured_is_what_is_read(tmp_path):
    """Files that take long, a test of the others; steps that did not run stay as they were."""
    table = tmp_path / 'seconds.txt'
    table.write_text('spark 7 others\nspark 70 t/c.py\nreal 40 t/old.py 4.4.0\n')
    suite = xml.etree.ElementTree.fromstring(RESULTS)
    dealing.write(dealing.measured_in(suite), str(table))
    assert dealing.read(str(table)) == (
        {('real', 't/a.py', '4.4.0-x3'): 17.0, ('spark', 't/c.py', ''): 70.0},
        {'real': 3.0, 'spark': 7.0},
    )


def test_where_all_that_ran_takes_long_the_others_stay_as_they_were(tmp_path):
    table = tmp_path / 'seconds.txt'
    table.write_text('spark 7 others\n')
    dealing.write([('spark t/a.py', 12.0)], str(table))
    assert dealing.read(str(table)) == ({('spark', 't/a.py', ''): 12.0}, {'spark': 7.0})


def test_the_results_of_a_test_name_its_room(parts_of, monkeypatch):
    monkeypatch.setenv('KAFKA_BROKER', REAL)
    items = [on_cluster('t/a.py', '4.4.0', 3), Item('t/b.py', 'apart', name='test[1]')]
    for hook_of in (conftest, top_conftest):
        parts_of(hook_of, items, 1, NOTHING)
    found = [item.user_properties for item in items]
    assert found == [[('room', 'real t/a.py 4.4.0-x3')], [('room', 'without t/b.py')]]


def test_the_table_names_files_that_there_are():
    times = dealing.read()
    assert set(times.others) == {'real', 'embedded', 'spark', 'without'}
    missing = {file for _, file, _ in times.files if not os.path.exists(os.path.join(ROOT, file))}
    assert not missing, 'python3 test/run.py --write-seconds'
