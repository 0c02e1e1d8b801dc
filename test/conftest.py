"""What holds for every test: nothing stays behind, and how many examples hypothesis tries.

Random order is pytest-randomly's, warnings become errors and hangs end by the settings in
``pyproject.toml``.
"""

from __future__ import annotations

import collections
import os
import signal

import hypothesis
import pytest

from test.leaks import leaked_since, take_stock

# A shell lets what it starts in the background ignore Ctrl-C, and so would the programs that tests
# start and interrupt. A handler is not passed on.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# dev: quick, for work at a desk. ci: more, and the same ones in every run of one commit, so that a
# red run can be repeated. thorough: what the declarations of the protocol were accepted with.
for name, examples, same in (('dev', 20, False), ('ci', 50, True), ('thorough', 10000, False)):
    hypothesis.settings.register_profile(
        name,
        max_examples=examples,
        derandomize=same,
        deadline=None,
        database=None if same else hypothesis.settings.default.database,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile(
    os.environ.get('HYPOTHESIS_PROFILE', 'ci' if os.environ.get('CI') else 'dev')
)


def pytest_collection_modifyitems(config, items):
    """Leave out what another part has of the tests without brokers (``KAFKA_TEST_PART=1/2``).

    The tests of one file stay together, unless they are marked ``apart``: those are dealt out last.
    Tests on brokers are divided by cluster, in test/integration/conftest.py.
    """
    number, parts = map(int, os.environ.get('KAFKA_TEST_PART', '1/1').split('/'))
    if parts == 1:
        return
    sizes = collections.Counter(_room(item) for item in items if not _is_on_brokers(item))
    loads, place = [0] * parts, {}
    for room, size in sorted(sizes.items(), key=lambda each: (each[0][1], -each[1], *each[0])):
        place[room] = loads.index(min(loads))
        loads[place[room]] += size
    others = [
        item for item in items if not _is_on_brokers(item) and place[_room(item)] != number - 1
    ]
    if others:
        config.hook.pytest_deselected(items=others)
        left_out = set(map(id, others))
        items[:] = [item for item in items if id(item) not in left_out]


def _room(item):
    """Return what stays together with a test: its file, and its name where it may be apart."""
    is_apart = item.get_closest_marker('apart') is not None
    return str(item.path), item.name if is_apart else ''


def _is_on_brokers(item):
    return item.get_closest_marker('integration') is not None


@pytest.fixture
def other_children():
    """Return a function that tells process ids which a test may leave: none, unless overridden."""
    return set


@pytest.fixture(autouse=True)
def nothing_leaks(other_children):
    """Fail a test that leaves a thread, a socket or a child process behind."""
    before = take_stock()
    yield
    leaked = leaked_since(before)
    leaked.children.difference_update(other_children())
    if any(leaked):
        pytest.fail(
            'left behind: '
            + ', '.join(
                '%s %s' % (kind, sorted(map(str, things)))
                for kind, things in zip(leaked._fields, leaked)
                if things
            )
        )
