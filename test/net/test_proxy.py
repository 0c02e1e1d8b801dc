"""Proxies: what is said to them, byte by byte, and what they may answer."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.net import proxy
from kafka.net.failures import ProxyError

SOCKS = 'socks5h://proxy'
HTTP = 'http://proxy:3128'


def spoken(url, *answers, host='broker', port=9092):
    """Return what a client says to a proxy that gives these answers."""
    steps = proxy.handshake(url, host, port)
    said = [next(steps)]
    for number, answer in enumerate(answers):
        try:
            said.append(steps.send(answer))
        except StopIteration:
            assert number == len(answers) - 1, 'it ended early'
            return said
    raise AssertionError('it wants more')


def refused(url, *answers, match, **where):
    with pytest.raises(ProxyError, match=match) as caught:
        spoken(url, *answers, **where)
    assert caught.value.stage == 'proxy' and 'Canary' not in str(caught.value)


# ---------------------------------------------------------------- SOCKS5

DONE = b'\x05\x00\x00\x01\x7f\x00\x00\x01\x23\x84'


def test_socks_by_name():
    assert spoken(SOCKS, b'\x05\x00', DONE) == [
        (
            b'\x05'  # version
            b'\x01\x00'
        ),  # one way: no login
        (
            b'\x05\x01\x00'  # CONNECT
            b'\x03\x06broker'
            b'\x23\x84'
        ),  # 9092
    ]


@pytest.mark.parametrize(
    ('host', 'encoded'),
    [
        ('10.0.0.1', b'\x01\x0a\x00\x00\x01'),
        ('::1', b'\x04' + bytes(15) + b'\x01'),
        ('b\xfccher', b'\x03\x0fxn--bcher-kva'.replace(b'\x0f', b'\x0d')),
    ],
)
def test_socks_by_address_and_by_international_name(host, encoded):
    said = spoken(SOCKS, b'\x05\x00', DONE, host=host)
    assert said[1] == b'\x05\x01\x00' + encoded + b'\x23\x84'


def test_socks_with_a_login():
    said = spoken('socks5://me%40home:Can%20ary@proxy', b'\x05\x02', b'\x01\x00', DONE)
    assert said[0] == b'\x05\x02\x00\x02'
    assert said[1] == b'\x01\x07me@home\x07Can ary'


@pytest.mark.parametrize('pieces', [1, 3])
def test_answers_may_come_in_pieces(pieces):
    steps = proxy.handshake(SOCKS, 'broker', 9092)
    data = b'\x05\x00' + DONE
    next(steps)
    said = b''
    with pytest.raises(StopIteration):
        for start in range(0, len(data), pieces):
            said += steps.send(data[start : start + pieces])
    assert said.count(b'broker') == 1


@pytest.mark.parametrize(
    'bound',
    [b'\x01' + bytes(4), b'\x04' + bytes(16), b'\x03\x05names'],
)
def test_where_the_proxy_connects_from_is_read_to_its_end(bound):
    spoken(SOCKS, b'\x05\x00', b'\x05\x00\x00' + bound + b'\x00\x01')


@pytest.mark.parametrize(
    ('answer', 'match'),
    [
        (b'\x05\xff', 'demands a user and a password'),
        (b'\x05\x02', 'demands a user and a password'),
        (b'HT', 'not a SOCKS5 proxy'),
        (b'\x04\x00', 'not a SOCKS5 proxy'),
        (b'', 'closed the connection'),
    ],
)
def test_a_socks_proxy_that_will_not(answer, match):
    refused(SOCKS, answer, match=match)


def test_a_login_that_a_socks_proxy_refuses():
    refused('socks5://me:Canary@p', b'\x05\x02', b'\x01\x01', match='refused user or password')
    refused('socks5://me:Canary@p', b'\x05\xff', match='login that is not offered')
    refused('socks5://%s:Canary@p' % ('x' * 256), b'\x05\x02', match='at most 255')


@pytest.mark.parametrize(
    ('code', 'text'), [(2, 'rules'), (4, 'host cannot be reached'), (5, 'refused'), (99, 'code 99')]
)
def test_a_broker_that_the_proxy_does_not_reach(code, text):
    answer = b'\x05' + bytes([code]) + DONE[2:]
    refused(SOCKS, b'\x05\x00', answer, match='does not connect to broker:9092: .*%s' % text)


def test_bytes_that_nobody_asked_for():
    refused(SOCKS, b'\x05\x00', DONE + b'x', match='1 bytes that belong to no request')
    refused(HTTP, b'HTTP/1.1 200 OK\r\n\r\nxyz', match='3 bytes that belong to no request')


def test_a_name_that_no_proxy_takes():
    for url in (SOCKS, HTTP):
        for host in ('x' * 300, '', '\ud800', 'a..\xfc'):
            with pytest.raises(ProxyError, match='can be no name'):
                spoken(url, b'\x05\x00', DONE, host=host)


# ---------------------------------------------------------------- HTTP


def test_http_connect():
    assert spoken(HTTP, b'HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n') == [
        b'CONNECT broker:9092 HTTP/1.1\r\nHost: broker:9092\r\n\r\n'
    ]


def test_http_connect_with_a_login_to_an_ipv6_address():
    said = spoken('http://me:s%3Aecret@proxy', b'HTTP/1.0 200\r\n', b'\r\n', host='::1')
    assert said[0] == (
        b'CONNECT [::1]:9092 HTTP/1.1\r\nHost: [::1]:9092\r\n'
        b'Proxy-Authorization: Basic bWU6czplY3JldA==\r\n\r\n'
    )


@pytest.mark.parametrize(
    ('answer', 'match'),
    [
        (b'HTTP/1.1 407 Proxy Authentication Required\r\n\r\n', '407.*give it a user'),
        (b'HTTP/1.1 403 Forbidden\r\n\r\n', 'broker:9092: 403 Forbidden'),
        (b'HTTP/1.1 x\r\n\r\n', 'not an HTTP proxy'),
        (b'SSH-2.0-x', 'not an HTTP proxy'),
        (b'\x05\x00', 'not an HTTP proxy'),
        (b'HTTP/1.1 200 OK\r\n' + b'X: y\r\n' * 4000, 'not an HTTP proxy'),
        (b'', 'closed the connection'),
    ],
)
def test_an_http_proxy_that_will_not(answer, match):
    refused(HTTP, answer, match=match)


def test_a_host_cannot_smuggle_a_header():
    refused(HTTP, match='can be no name', host='broker\r\nX: y')
    refused(HTTP, match='can be no name', host='a b')


# ---------------------------------------------------------------- addresses


def test_who_looks_up_the_name_is_told_by_the_scheme():
    assert not proxy.resolves_names('socks5://p')
    assert proxy.resolves_names('socks5h://p') and proxy.resolves_names('http://p')


@pytest.mark.parametrize(
    ('url', 'where'),
    [
        ('socks5://p', ('p', 1080)),
        ('socks5h://p:1', ('p', 1)),
        ('http://[::1]/', ('::1', 8080)),
    ],
)
def test_where_a_proxy_is(url, where):
    assert (proxy.parse(url).host, proxy.parse(url).port) == where


@pytest.mark.parametrize(
    'url',
    ['p:1080', 'socks4://p', 'https://p', 'socks5://', 'socks5://p:x', 'http://p/a', 'http://p?a',
     None, 5, b'http://p', 'socks5://u:Canary@p:99999', 'Canary'],
)  # fmt: skip
def test_what_is_no_proxy_is_refused_and_not_shown(url):
    with pytest.raises(KafkaConfigurationError, match='proxy') as caught:
        proxy.parse(url)
    assert 'Canary' not in str(caught.value) + repr(caught.value.__cause__)


def test_a_proxy_shows_no_password():
    address = proxy.parse('socks5://me:Canary@[::1]:9')
    assert address.shown == 'socks5://***@[::1]:9' == proxy.shown('socks5://me:Canary@[::1]:9')
    assert 'Canary' not in repr(address)
