"""A broker that nobody asks anything for a while, or that cannot be reached: what is kept of it."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaConnectionError
from kafka.testing.faults import Cut, Delay
from test.hostile_servers import nobody
from test.net.test_node_connection import ASK, Sim, link_to


def test_who_was_left_alone_may_hang_up_without_being_left_alone_for_it():
    """Its word may cross a request; one that hangs up in the middle of a talk has a reason."""
    sim = Sim()
    sim.ask()
    with sim.cluster.faults.add(Cut(0), 'Metadata', times=1), pytest.raises(KafkaConnectionError):
        sim.ask()
    assert sim.link.backoff > 0
    sim.ask()
    sim.loop.wait(lambda: False, 20)
    with sim.cluster.faults.add(Cut(0), 'Metadata', times=1), pytest.raises(KafkaConnectionError):
        sim.ask()
    assert sim.link.backoff == 0
    sim.stop()


def test_only_the_last_attempts_are_kept(loop):
    with nobody() as address:
        port = int(address.rpartition(':')[2])
        link = link_to(loop, port, reconnect_backoff=0.001, reconnect_backoff_max=0.001)
        for _ in range(15):
            with pytest.raises(KafkaConnectionError):
                loop.run(link.ready(), 60)
        assert len(link.attempts) == 10
        link.close()


def test_a_request_that_takes_longer_than_idle_brokers_are_kept_is_waited_for(monkeypatch):
    """Without being looked at in every turn."""
    sim = Sim(idle_timeout=5.0)
    sim.ask()
    looks, look = [], sim.link._look_at_idle
    monkeypatch.setattr(sim.link, '_look_at_idle', lambda: (looks.append(1), look()))

    def are_few():
        assert len(looks) < 20

    sim.cluster.faults.add(Delay(12.0), 'Metadata', times=1)
    task = sim.loop.spawn(sim.link.request(ASK))
    sim.loop.wait(lambda: are_few() or task.done, 60)
    assert task.result().brokers and sim.lost == [] and len(looks) <= 4
    sim.stop()
