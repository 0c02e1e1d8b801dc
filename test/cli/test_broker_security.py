"""What ``python -m kafka broker`` is told about security."""

from __future__ import annotations

import pytest

from kafka.cli import broker
from kafka.cli.broker_security import VARIABLE, SecurityOptions, greeting, users_in
from kafka.testing import Cluster, Tls
from test.cli.conftest import ended_with


@pytest.mark.parametrize(
    ('args', 'options'),
    [
        ([], {}),
        (['--users', 'file', '--mechanisms=PLAIN'], {'users': 'file', 'mechanisms': 'PLAIN'}),
        (
            ['--tls', '--super-user', 'a', '--super-user=b'],
            {'is_tls': True, 'super_users': ('a', 'b')},
        ),
        (
            ['--certificate=c', '--key', 'k', '--client-ca=a'],
            {'certificate': 'c', 'key': 'k', 'client_ca': 'a'},
        ),
    ],
)
def test_options_are_read(args, options):
    assert broker.parse(args).security == SecurityOptions(**options)


def test_users_come_from_a_file(tmp_path):
    path = tmp_path / 'users'
    path.write_text('# people\nalice:secret:with:colons\n\nbob: b \n', encoding='utf-8')
    found = SecurityOptions(users=str(path)).arguments({VARIABLE: 'eve:x'})
    assert found == {'tls': False, 'sasl': {'alice': 'secret:with:colons', 'bob': ' b '}}


def test_or_from_the_environment():
    assert SecurityOptions().arguments({VARIABLE: 'alice:secret'})['sasl'] == {'alice': 'secret'}
    assert 'sasl' not in SecurityOptions().arguments({})


@pytest.mark.parametrize('text', ['alice:a\nbob hunter2', 'alice:a\n:hunter2', 'alice:a\nhunter2:'])
def test_a_bad_line_is_told_by_its_number(text):
    with pytest.raises(ValueError) as caught:
        users_in(text, 'FILE')
    assert str(caught.value) == 'FILE, line 2: it must be NAME:PASSWORD'


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(ValueError, match='No such file'):
        SecurityOptions(users=str(tmp_path / 'none')).arguments({})
    (tmp_path / 'bytes').write_bytes(b'\xff')
    with pytest.raises(ValueError, match='not UTF-8 text'):
        SecurityOptions(users=str(tmp_path / 'bytes')).arguments({})


@pytest.mark.parametrize(
    ('options', 'expected'),
    [
        ({'is_tls': True}, {'tls': True}),
        ({'certificate': 'c', 'key': 'k'}, {'tls': Tls('c', 'k')}),
        (
            {'certificate': 'c', 'key': 'k', 'client_ca': 'a'},
            {'tls': Tls('c', 'k', 'a', 'required')},
        ),
        (
            {'mechanisms': 'PLAIN,OAUTHBEARER'},
            {'tls': False, 'mechanisms': ['PLAIN', 'OAUTHBEARER']},
        ),
        ({'super_users': ('a',)}, {'tls': False, 'authorizer': True, 'super_users': ('a',)}),
    ],
)
def test_options_become_arguments_of_a_cluster(options, expected):
    assert SecurityOptions(**options).arguments({}) == expected


@pytest.mark.parametrize(
    ('options', 'reason'),
    [
        ({'certificate': 'c'}, 'require each other'),
        ({'key': 'k'}, 'require each other'),
        ({'client_ca': 'a'}, 'needs --certificate'),
        ({'certificate': 'c', 'key': 'k', 'is_tls': True}, 'exclude each other'),
    ],
)
def test_options_that_do_not_go_together_are_told(options, reason):
    with pytest.raises(ValueError, match=reason):
        SecurityOptions(**options).arguments({})


def test_what_is_not_possible_is_told_with_the_usage(capsys):
    args = ['--version=0.9', '--mechanisms=PLAIN', '--port=0']
    assert 'GSSAPI only' in ended_with(2, capsys, broker.main, args)


def test_a_certificate_that_is_not_there_is_told_in_a_line(capsys):
    assert broker.main(['--certificate=none.pem', '--key=none.key', '--port=0']) == 1
    said = capsys.readouterr().err
    assert said.count('\n') == 1
    assert 'none.pem with the key none.key' in said


def test_the_start_tells_how_to_connect():
    assert greeting(Cluster().security) == []
    cluster = Cluster(sasl={'alice': 'hunter2'}, tls=True)
    told = greeting(cluster.security)
    assert told[0] == (
        '  clients connect with SASL_SSL and log in by PLAIN, SCRAM-SHA-256, SCRAM-SHA-512'
    )
    assert told[1] == '  they trust %s' % cluster.ca_file
    assert 'hunter2' not in str(told)
