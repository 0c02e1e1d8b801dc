"""Host lists as programs write them, and what they are read as."""

from __future__ import annotations

import socket

import pytest

from kafka import conn
from kafka.config.kinds import parse_server
from kafka.errors import KafkaConfigurationError
from kafka.net import addresses
from kafka.net.addresses import collect_hosts, get_ip_port_afi


def test_programs_find_them_in_conn():
    assert (conn.collect_hosts, conn.get_ip_port_afi) == (collect_hosts, get_ip_port_afi)
    assert conn.DEFAULT_KAFKA_PORT == addresses.DEFAULT_KAFKA_PORT == 9092


@pytest.mark.parametrize(
    ('text', 'parsed'),
    [
        ('localhost', ('localhost', 9092, socket.AF_UNSPEC)),
        ('localhost:1', ('localhost', 1, socket.AF_UNSPEC)),
        ('127.0.0.1', ('127.0.0.1', 9092, socket.AF_INET)),
        ('127.0.0.1:5', ('127.0.0.1', 5, socket.AF_INET)),
        ('[::1]', ('::1', 9092, socket.AF_INET6)),
        ('[::1]:77', ('::1', 77, socket.AF_INET6)),
        ('::1:9093', ('::1', 9093, socket.AF_INET6)),
        ('::1', ('::1', 9092, socket.AF_INET6)),
        ('2001::1', ('2001::1', 9092, socket.AF_INET6)),
        ('[localhost]:3', ('localhost', 3, socket.AF_INET6)),
        ('[localhost]', ('localhost', 9092, socket.AF_INET6)),
        ('  a.example:4 ', ('a.example', 4, socket.AF_UNSPEC)),
        ('a:-1', ('a', 9092, socket.AF_UNSPEC)),
        ('a:', ('a', 9092, socket.AF_UNSPEC)),
    ],
)
def test_one_address(text, parsed):
    assert get_ip_port_afi(text) == parsed


HOSTS = [
    ('a', 1234, socket.AF_UNSPEC),
    ('b', 9092, socket.AF_UNSPEC),
    ('::1', 9, socket.AF_INET6),
]


@pytest.mark.parametrize(
    'hosts',
    [
        'a:1234,b,[::1]:9',
        ' a:1234 , b , [::1]:9 ',
        b'a:1234,b,[::1]:9',
        ['a:1234', ' b ', '[::1]:9'],
        [b'a:1234', 'b', '[::1]:9'],
        iter(('a:1234', 'b', '[::1]:9')),
    ],
)
def test_hosts_come_as_text_or_as_an_iterable_of_texts(hosts):
    assert collect_hosts(hosts, randomize=False) == HOSTS


@pytest.mark.parametrize('nothing', [[], '', ' , ', ()])
def test_no_hosts(nothing):
    assert collect_hosts(nothing) == []


def test_hosts_are_shuffled_when_asked(monkeypatch):
    monkeypatch.setattr('random.shuffle', lambda hosts: hosts.reverse())
    assert collect_hosts('a:1234,b,[::1]:9') == HOSTS[::-1]


@pytest.mark.parametrize('hosts', [None, 5, [5], [('a', 1)], b'\xff', [b'\xff']])
def test_hosts_of_a_wrong_type_are_named(hosts):
    with pytest.raises(TypeError, match='hosts'):
        collect_hosts(hosts)


@pytest.mark.parametrize('hosts', ['a:port', '[::1]:x', 'a:1.5', 'a:65536'])
def test_a_port_that_can_be_none_is_named(hosts):
    with pytest.raises(KafkaConfigurationError, match='port'):
        collect_hosts(hosts)


@pytest.mark.parametrize('host', [None, 5, ['a']])
def test_an_address_that_is_no_text_is_named(host):
    with pytest.raises(TypeError, match='not text'):
        get_ip_port_afi(host)


@pytest.mark.parametrize('protocol', ['PLAINTEXT', 'plaintext', 'SASL_SSL', 'INTERNAL'])
def test_the_name_of_a_listener_is_passed_over(protocol):
    assert get_ip_port_afi(protocol + '://a:5') == ('a', 5, socket.AF_UNSPEC)
    assert parse_server(protocol + '://a:5') == ('a', 5)


@pytest.mark.parametrize(
    ('address', 'told'),
    [
        ('http://a:80', 'http:// is not a protocol of brokers'),
        ('HTTPS://a', 'HTTPS:// is not a protocol'),
        ('zookeeper://a:2181', 'zookeeper:// is not'),
        ('tcp://a:1', 'tcp:// is not'),
        ('://a:1', ':// is not'),
        ('who:secret@a:9092', 'user or password'),
        ('PLAINTEXT://who:secret@a:9092', 'user or password'),
        ('http://who:secret@a:9092', 'http:// is not'),
        ('a:2181/kafka', 'path'),
        ('a/kafka', 'path'),
    ],
)
def test_what_is_no_broker_is_told_without_its_password(address, told):
    for read, kind in (
        (get_ip_port_afi, KafkaConfigurationError),
        (collect_hosts, KafkaConfigurationError),
        (parse_server, ValueError),
    ):
        with pytest.raises(kind, match=told) as raised:
            read(address)
        assert 'secret' not in str(raised.value)
