"""Which test runs on which release, and the cluster, client and topic that it gets.

Owns the parameter ``cluster``: a test that asks for it runs once per chosen release
(``KAFKA_VERSION``, else the default set of servers/releases.txt), ordered so that one cluster at a
time is up. ``KAFKA_BROKER=embedded`` takes embedded brokers of these releases in place of real
ones. Markers narrow that, on a test or on one of its parameters: ``brokers(count)``,
``releases(since, until, some)``, ``real`` and ``embedded``. ``KAFKA_TEST_RELEASES=4.4.0,`` narrows
it to some of these releases, separated by commas, an empty one for tests of no release: run.py has
a process for each.
"""

from __future__ import annotations

import itertools
import os
import re
from typing import NamedTuple

import pytest

from servers.cluster import Cluster
from servers.embedded import EmbeddedCluster
from servers.releases import (
    EMBEDDED,
    REAL,
    Release,
    are_named,
    chosen,
    chosen_kind,
    problem,
)
from test import dealing
from test.integration import kerberos
from test.integration.secured import SecuredCluster

#: Before that release there is nothing to secure.
FIRST_SECURED = (0, 9)


class Setting(NamedTuple):
    """What one cluster is made of."""

    release: Release
    brokers: int
    kind: str

    @property
    def id(self):
        """The name in brackets behind the test's."""
        count = '-x%d' % self.brokers if self.brokers > 1 else ''
        return self.release.name + count + ('-embedded' if self.kind == EMBEDDED else '')


RUNNING = pytest.StashKey()  # the setting and the cluster that is up
SECURED_RUNNING = pytest.StashKey()  # the processes of the secured one that is up


def pytest_configure(config):
    config.addinivalue_line(
        'markers',
        'releases(since, until, some): first and last release that the test is for; which ones are'
        ' enough when none was asked for by name',
    )
    config.addinivalue_line('markers', 'brokers(count): how many the cluster has')
    config.addinivalue_line(
        'markers', "column(name): of the release table, where it is not that of the test's file"
    )
    config.addinivalue_line('markers', 'real: about what embedded brokers do not have')
    config.addinivalue_line('markers', 'embedded: about them alone; left out by KAFKA_BROKER=real')


def pytest_generate_tests(metafunc):
    if 'secured' in metafunc.fixturenames:
        wanted = [release for release in chosen() if release.version >= FIRST_SECURED]
        metafunc.parametrize(
            'secured', wanted, indirect=True, scope='session', ids=[each.name for each in wanted]
        )
    if 'cluster' not in metafunc.fixturenames:
        return
    try:
        wanted, kind = chosen(), chosen_kind()
    except ValueError as error:
        raise pytest.UsageError('KAFKA_VERSION, KAFKA_BROKER: %s' % error) from None
    marker = metafunc.definition.get_closest_marker('brokers')
    settings = [Setting(release, marker.args[0] if marker else 1, kind) for release in wanted]
    metafunc.parametrize(
        'cluster',
        settings,
        indirect=True,
        scope='session',
        ids=[setting.id for setting in settings],
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what is not meant for a release: that is a choice, not a gap to be shown."""
    # Called with what other folders have as well, where a parameter may be called release, too.
    kept = [item for item in items if not _is_integration(item) or _is_meant(item)]
    for item in kept:
        # For the release table: what a test counts as, unless that is its file's column.
        for marker in list(item.iter_markers('column'))[:1]:
            item.user_properties.append(('column', marker.args[0]))
    for item in kept:
        if _is_integration(item):
            dealing.name_room(item, chosen_kind(), _cluster_of(item))
    if len(kept) < len(items):
        chosen_ones = set(map(id, kept))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen_ones])
        items[:] = kept


def _is_integration(item):
    return item.get_closest_marker('integration') is not None


def _setting(item):
    """Return what cluster a test gets; one that starts its own says of which ``release``."""
    params = item.callspec.params if hasattr(item, 'callspec') else {}
    for name in ('release', 'secured'):
        if name in params:
            return Setting(params[name], 1, name)
    return params.get('cluster')


def _is_meant(item):
    """Whether the markers of a test, and of its other parameters, allow the release it got."""
    setting = _setting(item)
    if not _is_in_this_process(setting):
        return False
    if isinstance(setting, Setting) and not hasattr(setting.release, 'version'):
        return False  # none of the releases knows what the test is about
    if item.get_closest_marker('real') is not None and chosen_kind() == EMBEDDED:
        return False
    if item.get_closest_marker('embedded') is not None and os.environ.get('KAFKA_BROKER') == REAL:
        return False
    return setting is None or all(
        _allows(setting.release, **marker.kwargs) for marker in item.iter_markers('releases')
    )


def _is_in_this_process(setting):
    """Return True unless a test is of a release that another process has."""
    wanted = os.environ.get('KAFKA_TEST_RELEASES')
    if wanted is None:
        return True
    return getattr(getattr(setting, 'release', None), 'name', '') in wanted.split(',')


def _cluster_of(item):
    """Return which cluster a test needs, such as ``4.4.0-x3`` and ``4.4.0-secured``."""
    setting = _setting(item)
    if setting is None:
        return ''
    return setting.id + ('' if setting.kind in (REAL, EMBEDDED) else '-' + setting.kind)


def _allows(release, since='0', until='99', some=()):
    lowest, highest = (tuple(map(int, text.split('.'))) for text in (since, until))
    if some and not are_named() and release.name not in some:
        return False
    return lowest <= release.version and release.version[: len(highest)] <= highest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Start again what the test before killed, before this one's belongings are counted."""
    setting, cluster = item.config.stash.get(RUNNING, (None, None))
    if hasattr(item, 'callspec') and setting == item.callspec.params.get('cluster', ()):
        cluster.restart_killed()


@pytest.fixture(scope='session')
def cluster(request):
    """A running cluster of the release that the test's parameter names."""
    release, brokers, kind = request.param
    reason = problem(release) if kind != EMBEDDED else None
    if reason:
        pytest.skip(reason)
    with (EmbeddedCluster if kind == EMBEDDED else Cluster)(release, brokers) as running:
        request.config.stash[RUNNING] = (request.param, running)
        yield running
    del request.config.stash[RUNNING]


@pytest.fixture(scope='session')
def realm(tmp_path_factory):
    """A Kerberos realm with a ticket for alice, None where there can be none."""
    if kerberos.missing():
        yield None
        return
    with kerberos.Realm(tmp_path_factory.mktemp('realm')) as made:
        made.log_in()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in made.environment.items():
                patch.setenv(name, value)
            yield made


@pytest.fixture(scope='session')
def secured(request, realm, tmp_path_factory):
    """A broker with every listener, of the release that the test's parameter names."""
    reason = problem(request.param)
    if reason:
        pytest.skip(reason)
    with SecuredCluster(request.param, tmp_path_factory.mktemp('tls'), realm) as running:
        running.create_topic('secured', 1)
        request.config.stash[SECURED_RUNNING] = running.process_ids | (
            {realm._kdc.pid} if realm else set()
        )
        yield running
    del request.config.stash[SECURED_RUNNING]


@pytest.fixture(autouse=True)
def nothing_went_wrong_inside(request):
    """Fail a test in which an embedded broker could not handle a request."""
    yield
    _, cluster = request.config.stash.get(RUNNING, (None, None))
    if cluster is not None and cluster.is_embedded:
        failures = cluster.failures()
        assert not failures, '%s\n%s' % ('\n'.join(failures), cluster.logs())


@pytest.fixture
def other_children(request):
    """Allow a test to leave brokers that it killed and started again."""

    def processes():
        _, running = request.config.stash.get(RUNNING, (None, None))
        own = set() if running is None else running.process_ids
        return own | request.config.stash.get(SECURED_RUNNING, set())

    return processes


_numbers = itertools.count(1)


@pytest.fixture
def new_name(request):
    """Return a function that gives a topic or group name nobody used before."""
    test = re.sub(r'\W', '-', request.node.originalname)

    def give():
        return '%s-%d' % (test, next(_numbers))

    return give


@pytest.fixture
def topic(cluster, new_name):
    """The name (str) of a new topic with two partitions, each with a leader."""
    name = new_name()
    cluster.create_topic(name, 2)
    return name


@pytest.fixture
def wide(cluster, new_name):
    """The name of a new topic with four partitions, for groups."""
    from test.integration.consuming import PARTITIONS  # late, as in client()

    name = new_name()
    cluster.create_topic(name, PARTITIONS)
    return name


@pytest.fixture
def client(cluster):
    """A client of 0.9.5 for the cluster."""
    from kafka import KafkaClient  # late: what the chosen releases are can be told without it

    made = KafkaClient(cluster.bootstrap)
    yield made
    made.close()


@pytest.fixture
def consume(cluster):
    """Return a function that makes a KafkaConsumer of the modern kind; each is closed."""
    from kafka import KafkaConsumer  # late, as above

    made = []

    def give(*topics, **options):
        options = {'group_id': None, 'auto_offset_reset': 'earliest', **options}
        made.append(KafkaConsumer(*topics, bootstrap_servers=cluster.bootstrap, **options))
        return made[-1]

    yield give
    for consumer in made:
        consumer.close()


@pytest.fixture
def fill(cluster):
    """Return a function that writes {topic: {partition: [value, or (key, value)]}}."""
    from test.integration.judges import Topics  # late: confluent-kafka

    return Topics(cluster).fill


@pytest.fixture
def group(new_name):
    """The name of a group that nobody used before."""
    return new_name()
