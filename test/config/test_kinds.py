"""kafka.config.kinds: what is one of a kind, what it becomes, what is refused, with which hint."""

from __future__ import annotations

import datetime
import fractions
import math

import pytest

from kafka.config import kinds
from kafka.config.kinds import INT32_MAX, Unfit, UnfitType


class Serializer:
    def serialize(self, topic, data):
        return data


class Reporter:
    def init(self, metrics):
        pass


MS = kinds.milliseconds(0, INT32_MAX)
EVER = kinds.milliseconds(0, never=True)
SIZE = kinds.size(1)
COUNT = kinds.whole(0, infinite=True)
WORD = kinds.choice(['gzip', 'snappy'], none=True, also={'none': None, 0: None})

GOOD = [
    (MS, 5, 5),
    (MS, 0.5, 0.5),
    (MS, fractions.Fraction(1, 2), 0.5),
    (MS, INT32_MAX, INT32_MAX),
    (EVER, -1, -1),
    (EVER, math.inf, math.inf),
    (kinds.milliseconds(none=True), None, None),
    (SIZE, 1024.0, 1024),
    (kinds.size(none=True), None, None),
    (COUNT, math.inf, math.inf),
    (COUNT, 3, 3),
    (kinds.FLAG, 1, True),
    (kinds.FLAG, False, False),
    (kinds.text(), 'x', 'x'),
    (kinds.text(), None, None),
    (kinds.text(empty=True), '', ''),
    (WORD, 'gzip', 'gzip'),
    (WORD, 'none', None),
    (WORD, 0, None),
    (WORD, None, None),
    (kinds.choice(['SSL'], fold=str.upper), 'ssl', 'SSL'),
    (kinds.ACKS, 'all', -1),
    (kinds.ACKS, -1, -1),
    (kinds.ACKS, 1, 1),
    (kinds.RELEASE, None, None),
    (kinds.RELEASE, 'auto', None),
    (kinds.RELEASE, '0.10', (0, 10)),
    (kinds.RELEASE, (2, 8, 1), (2, 8, 1)),
    (kinds.RELEASE, [0, 8, 0], (0, 8, 0)),
    (kinds.SERVERS, 'a', 'a'),
    (kinds.SERVERS, 'a:1, b:2', 'a:1, b:2'),
    (kinds.SERVERS, ['a:1', '[::1]:77'], ['a:1', '[::1]:77']),
    (kinds.SERVERS, ('a:1', 'b'), ['a:1', 'b']),
    (kinds.SERVERS, 'SASL_SSL://a:1', 'SASL_SSL://a:1'),
    (kinds.function('serialize'), str.encode, str.encode),
    (kinds.function('serialize'), bytes, bytes),
    (kinds.function('partition'), dict, dict),
    (kinds.listed('names', lambda each: isinstance(each, str)), ['a'], ['a']),
    (kinds.SECRET, 'pass', 'pass'),
    (kinds.KEY_PASSWORD, len, len),
    (kinds.KEY_PASSWORD, bytearray(b'x'), b'x'),
    (kinds.FILE, '/a/b.pem', '/a/b.pem'),
    (kinds.FILE, b'-----BEGIN CERTIFICATE-----', b'-----BEGIN CERTIFICATE-----'),
    (kinds.PROXY, 'socks5://h:1', 'socks5://h:1'),
]

BAD = [
    (MS, '5', UnfitType, 'without a unit'),
    (MS, '5s', UnfitType, 'without a unit'),
    (MS, datetime.timedelta(seconds=3), UnfitType, 'write 3000'),
    (MS, None, UnfitType, ''),
    (MS, True, UnfitType, ''),
    (MS, 1j, UnfitType, ''),
    (MS, math.nan, Unfit, ''),
    (MS, math.inf, Unfit, ''),
    (MS, -1, Unfit, ''),
    (MS, 10**12, Unfit, 'milliseconds'),
    (EVER, math.nan, Unfit, ''),
    (SIZE, 1.5, Unfit, ''),
    (SIZE, 0, Unfit, ''),
    (SIZE, 2**31, Unfit, ''),
    (SIZE, '1M', UnfitType, 'bytes'),
    (SIZE, math.inf, Unfit, ''),
    (SIZE, -math.inf, Unfit, ''),
    (COUNT, -1, Unfit, ''),
    (kinds.FLAG, 'false', UnfitType, 'not a bool'),
    (kinds.FLAG, None, UnfitType, ''),
    (kinds.FLAG, 2, UnfitType, ''),
    (kinds.FLAG, 1.0, UnfitType, ''),
    (kinds.text(), '', Unfit, ''),
    (kinds.text(none=False), None, UnfitType, ''),
    (kinds.text(), b'x', UnfitType, 'decode'),
    (WORD, 'gzpi', Unfit, "mean 'gzip'"),
    (WORD, 'brotli', Unfit, ''),
    (WORD, 7, UnfitType, ''),
    (WORD, False, UnfitType, ''),
    (kinds.ACKS, 2, Unfit, ''),
    (kinds.ACKS, '1', Unfit, 'a number'),
    (kinds.ACKS, 'most', Unfit, ''),
    (kinds.ACKS, None, UnfitType, ''),
    (kinds.ACKS, True, UnfitType, ''),
    (kinds.RELEASE, 0.1, UnfitType, 'float'),
    (kinds.RELEASE, '2.x', Unfit, ''),
    (kinds.RELEASE, '', Unfit, ''),
    (kinds.RELEASE, (), Unfit, ''),
    (kinds.RELEASE, (0, 7), Unfit, ''),
    (kinds.RELEASE, (1, -1), Unfit, ''),
    (kinds.RELEASE, ('2', '8'), UnfitType, ''),
    (kinds.RELEASE, (1, 2, 3, 4, 5), Unfit, ''),
    (kinds.SERVERS, '', Unfit, 'the list is empty'),
    (kinds.SERVERS, [], Unfit, 'the list is empty'),
    (kinds.SERVERS, ' , ', Unfit, 'the list is empty'),
    (kinds.SERVERS, None, UnfitType, ''),
    (kinds.SERVERS, [('a', 1)], UnfitType, 'text'),
    (kinds.SERVERS, b'a:1', UnfitType, ''),
    (kinds.SERVERS, 'a:b', Unfit, 'a:b'),
    (kinds.SERVERS, 'a:0', Unfit, ''),
    (kinds.SERVERS, 'a:65536', Unfit, ''),
    (kinds.SERVERS, 'a:-1', Unfit, ''),
    (kinds.SERVERS, ':9092', Unfit, ''),
    (kinds.SERVERS, '[::1', Unfit, ''),
    (kinds.CLIENT_ID, 'x' * 32768, Unfit, 'it has 32768 bytes'),
    (kinds.SERVERS, '[::1]77', Unfit, ''),
    (kinds.SERVERS, 'a:1 b:2', Unfit, ''),
    (kinds.SERVERS, 'SSL://user:canary@a:1', Unfit, 'sasl_plain_username'),
    (kinds.function('serialize'), Serializer, UnfitType, 'instance'),
    (kinds.function('serialize'), 5, UnfitType, ''),
    (kinds.function(none=False), None, UnfitType, ''),
    (kinds.listed('names', lambda each: isinstance(each, str)), 'a', UnfitType, 'list'),
    (
        kinds.listed('names', lambda each: isinstance(each, str)),
        [1],
        UnfitType,
        'item 0, int, is not one',
    ),
    (kinds.listed('names', lambda each: isinstance(each, str)), None, UnfitType, ''),
    (kinds.SECRET, b'pass', UnfitType, ''),
    (kinds.KEY_PASSWORD, 5, UnfitType, ''),
    (kinds.FILE, 5, UnfitType, ''),
    (kinds.FILE, '', Unfit, ''),
    (kinds.FILE, b'path', UnfitType, 'PEM'),
    (kinds.PROXY, 'host:1080', Unfit, ''),
    (kinds.PROXY, ('h', 1), UnfitType, ''),
    (kinds.TLS_CONTEXT, 'yes', UnfitType, ''),
]


@pytest.mark.parametrize('kind, value, becomes', GOOD)
def test_values_of_a_kind(kind, value, becomes):
    found = kind.convert(value)
    assert found == becomes
    assert isinstance(found, type(becomes))


@pytest.mark.parametrize('kind, value, error, hint', BAD)
def test_values_of_no_kind_are_refused(kind, value, error, hint):
    with pytest.raises(Unfit) as caught:
        kind.convert(value)
    assert type(caught.value) is error
    assert hint in str(caught.value)
    assert 'canary' not in str(caught.value)


def test_a_serializer_is_told_by_its_method():
    serializer = Serializer()
    assert kinds.function('serialize').convert(serializer) is serializer


def test_a_check_for_methods_wants_all_of_them():
    assert kinds.has_method('init')(Reporter)
    assert not kinds.has_method('init', 'close')(Reporter)


@pytest.mark.parametrize(
    'text, server',
    [
        ('localhost', ('localhost', 9092)),
        ('localhost:1', ('localhost', 1)),
        ('[::1]', ('::1', 9092)),
        ('[::1]:77', ('::1', 77)),
        ('::1:9093', ('::1', 9093)),
        ('2001:db8::5678', ('2001:db8::5678', 9092)),
        ('2001:db8::1:9093', ('2001:db8::1', 9093)),
        ('fe80::1%eth0:9093', ('fe80::1%eth0', 9093)),
        ('1:2:3:4:5:6:7:9093', ('1:2:3:4:5:6:7:9093', 9092)),
        ('1:2:3:4:5:6:7:8:9093', ('1:2:3:4:5:6:7:8', 9093)),
        ('::1:2', ('::1:2', 9092)),
        ('2001::1', ('2001::1', 9092)),
        ('PLAINTEXT://a:1', ('a', 1)),
        ('a:', ('a', 9092)),
    ],
)
def test_parse_server(text, server):
    assert kinds.parse_server(text) == server
