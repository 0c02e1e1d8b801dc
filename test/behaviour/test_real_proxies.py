"""By way of real proxies, microsocks and tinyproxy: KafkaProducer and the clients of 0.9.5."""

from __future__ import annotations

import time

import pytest

from kafka import KafkaClient, KafkaProducer, SimpleProducer
from kafka.errors import KafkaTimeoutError, KafkaUnavailableError, NoBrokersAvailable
from kafka.testing import Cluster
from test.net import proxies
from test.stored import stored

PROGRAMS = {'socks5': 'microsocks', 'socks5h': 'microsocks', 'http': 'tinyproxy'}
SCHEMES = list(PROGRAMS)


@pytest.fixture(params=SCHEMES)
def scheme(request):
    reason = proxies.missing(PROGRAMS[request.param])
    if reason:
        pytest.skip(reason)
    return request.param


@pytest.fixture
def cluster():
    with Cluster(topics={'t': 1}) as running:
        yield running


def run(scheme, **options):
    return (proxies.http if scheme == 'http' else proxies.socks)(**options)


def url(scheme, port, user=None, password=proxies.PASSWORD):
    login = '' if user is None else '%s:%s@' % (user, password)
    return '%s://%s127.0.0.1:%d' % (scheme, login, port)


def send(cluster, proxy):
    """Send by each generation of clients; check that both came."""
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, proxy_url=proxy) as producer:
        assert producer.send('t', b'new').get(60).offset == 0
    client = KafkaClient(cluster.bootstrap, proxy_url=proxy)
    SimpleProducer(client).send_messages('t', b'old')
    client.close()
    assert stored(cluster) == [b'new', b'old']


def refusals(cluster, proxy):
    """Return what each generation of clients says of a proxy that does not let it through."""
    for longest in (500, 5000, 30000):  # more only where the machine is busy
        began = time.monotonic()
        with pytest.raises(NoBrokersAvailable) as new:
            KafkaProducer(
                bootstrap_servers=cluster.bootstrap, proxy_url=proxy, bootstrap_timeout_ms=longest
            )
        assert time.monotonic() - began < longest / 1000 + 20
        if not all(isinstance(each.error, KafkaTimeoutError) for each in new.value.attempts):
            break
    assert {each.stage for each in new.value.attempts} == {'proxy'}
    with pytest.raises(KafkaUnavailableError) as old:
        KafkaClient(cluster.bootstrap, proxy_url=proxy)
    assert stored(cluster) == []
    for error in (new.value, old.value):
        assert proxies.PASSWORD not in str(error)
    return str(new.value), str(old.value)


def test_through_the_proxy(scheme, cluster):
    with run(scheme) as port:
        send(cluster, url(scheme, port))


def test_through_a_proxy_that_wants_a_password(scheme, cluster):
    with run(scheme, with_login=True) as port:
        send(cluster, url(scheme, port, proxies.USER))


def test_a_wrong_password(scheme, cluster):
    with run(scheme, with_login=True) as port:
        for said in refusals(cluster, url(scheme, port, 'bob', proxies.PASSWORD)):
            assert 'refused user or password' in said or '401' in said or '407' in said


def test_no_password_where_one_is_wanted(scheme, cluster):
    with run(scheme, with_login=True) as port:
        for said in refusals(cluster, url(scheme, port)):
            assert 'demands a user and a password' in said or '407' in said


def test_a_broker_that_the_proxy_does_not_reach(scheme, cluster):
    address = cluster.bootstrap
    cluster.kill(0)
    with run(scheme) as port:
        for said in refusals(cluster, url(scheme, port)):
            assert 'does not connect to %s' % address in said


def test_a_proxy_that_allows_other_ports_only(cluster):
    reason = proxies.missing('tinyproxy')
    if reason:
        pytest.skip(reason)
    with proxies.http(more='ConnectPort 443') as port:
        for said in refusals(cluster, url('http', port)):
            assert '403' in said
