"""Each loop has all that coroutines and clients use of one."""

from __future__ import annotations

import inspect

import pytest

from kafka.net.loop.event_loop import EventLoop
from kafka.net.loop.loop import Loop
from kafka.testing import MemoryCluster
from test.simulation.loop import SimLoop

NAMES = [name for name in vars(EventLoop) if not name.startswith('_')]


@pytest.fixture(params=['threads', 'simulation'])
def loop(request):
    if request.param == 'threads':
        yield Loop()
    else:
        with MemoryCluster() as cluster:
            yield SimLoop(cluster)


@pytest.mark.parametrize('name', NAMES)
def test_a_loop_has_each_method(loop, name):
    here, wanted = getattr(loop, name), getattr(EventLoop, name)
    assert inspect.iscoroutinefunction(here) is inspect.iscoroutinefunction(wanted)


def test_the_protocol_is_not_empty():
    assert {'spawn', 'wait', 'connect'} < set(NAMES)
