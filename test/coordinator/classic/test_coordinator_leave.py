"""LeaveGroup: who sends it, and what is said when nobody hears it."""

from __future__ import annotations

import logging

import pytest

from kafka.coordinator.classic.coordinator import leave_group
from kafka.coordinator.classic.state_machine import NOBODY, Generation
from kafka.coordinator.group_settings import GroupSettings
from kafka.errors import KafkaConnectionError
from kafka.net.loop.tasks import Waiter
from kafka.protocol.negotiation import BrokerVersions
from test.manual_loop import ManualLoop

ME = Generation(3, 'me')


class Coordinator:
    """The pool, and the link that it gives."""

    versions = BrokerVersions({13: (0, 5)})

    def __init__(self):
        self.asked = []
        self.says = None
        self.session = self  # None once the connection is lost

    async def group_link(self, group):
        self.asked.append(group)
        return self

    async def request(self, request, timeout, version):
        self.asked.append(request.members[0].member_id)
        if isinstance(self.says, Waiter):
            await self.says
        elif self.says is not None:
            raise self.says


@pytest.fixture
def coordinator():
    return Coordinator()


def leave(coordinator, who=ME, **settings):
    loop = ManualLoop()
    settings = GroupSettings('g', session_timeout=10.0, **settings)
    task = loop.spawn(leave_group(loop, coordinator, settings, who, 'why', 2.0))
    loop.settle()
    return loop, task


def test_a_dynamic_member_says_goodbye(coordinator):
    _, task = leave(coordinator)
    assert task.done
    assert coordinator.asked == ['g', 'me']


@pytest.mark.parametrize(('who', 'instance'), [(NOBODY, None), (ME, 'static')])
def test_who_has_no_id_and_who_comes_back_says_nothing(coordinator, who, instance):
    _, task = leave(coordinator, who, group_instance_id=instance)
    assert task.done
    assert coordinator.asked == []


def test_it_is_logged_and_not_raised_when_nobody_hears_it(coordinator, caplog):
    caplog.set_level(logging.INFO)
    coordinator.says = KafkaConnectionError('gone')
    _, task = leave(coordinator)
    assert task.result() is None
    assert 'that me leaves' in caplog.text
    assert 'session_timeout_ms=10000' in caplog.text


def test_a_connection_that_is_lost_at_once_is_logged_and_not_raised(coordinator, caplog):
    """It was ready when it was waited for, and is not any more when the request is made."""
    caplog.set_level(logging.INFO)
    coordinator.session = coordinator.versions = None
    _, task = leave(coordinator)
    assert task.result() is None
    assert 'that me leaves' in caplog.text


def test_it_is_bounded(coordinator):
    coordinator.says = Waiter()
    loop, task = leave(coordinator)
    loop.advance(1.9)
    assert not task.done
    loop.advance(0.2)
    assert task.done
