"""Logins to a secured broker, good and bad ones, as dialogues of which everything is written down.

Owns the connection of one dialogue, what may be random in it, and the dialogues themselves.
"""

from __future__ import annotations

import base64
import re
import struct
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from kafka.protocol.api import ApiKey
from kafka.testing.releases import BrokerRelease
from kafka.testing.security.sasl.oauthbearer import unsigned_token
from test.differential.answers import plain
from test.differential.runner import CLOSED, Context, Patience, Recording, Wire
from test.differential.script import framed, is_wanted, request_of, served_versions
from test.differential.secured_brokers import PASSWORDS
from test.testing.security.sasl.clients import ScramClient
from test.testing.security.sasl.clients import plain as plain_token

#: Has no password but in SCRAM.
SCRAM_USER, SCRAM_PASSWORD = 'sam', 'sam-secret'
SILENT_SECONDS = 1.5


class Talk:
    """One connection, on which everything is written down."""

    def __init__(self, address: Tuple[str, int], release: BrokerRelease) -> None:
        self.wire = Wire(address)
        self.release = release
        self.said: List[Dict[str, Any]] = []
        self.is_closed = False
        self._context = Context(self.wire, release, Patience(SILENT_SECONDS))

    def ask(self, api: int, fields: Dict[str, Any], version: Optional[int] = None) -> Any:
        """Send a request; return the answer, None if there is none."""
        if self.is_closed:
            return None
        chosen = served_versions(api, self.release)[-1] if version is None else version
        frames = self._context.frame(request_of(api, fields, chosen), chosen)
        outcome, answer = self._context.exchange(api, chosen, frames)
        self.is_closed = outcome == CLOSED
        self.said.append({'outcome': outcome})
        if answer is not None:
            is_old = api == ApiKey.API_VERSIONS and answer.error_code == 35
            shown = plain(answer, 0 if is_old else chosen, self._context.now_ms)
            shown.pop('api_keys', None)
            shown.pop('supported_features', None)
            shown.pop('finalized_features', None)
            self.said[-1]['answer'] = {key: _masked(key, value) for key, value in shown.items()}
        return answer

    def version_99(self, api: int) -> None:
        """Send a request in a version that nobody knows."""
        highest = served_versions(api, self.release)[-1]
        frames = bytearray(self._context.frame(request_of(api, {}, highest), highest))
        struct.pack_into('>h', frames, 6, 99)
        outcome, answer = self._context.exchange(api, 0, bytes(frames))
        self.said.append({'outcome': outcome, 'code': getattr(answer, 'error_code', None)})

    def bare(self, token: bytes) -> Optional[bytes]:
        """Send a token without a header; return what comes."""
        if self.is_closed:
            return None
        reply = self.wire.exchange(framed(token), SILENT_SECONDS)
        self.is_closed = reply.outcome == CLOSED
        self.said.append({'outcome': reply.outcome, 'token': _masked_token(reply.body)})
        return reply.body if reply.outcome == 'answer' else None

    def end(self) -> Dict[str, Any]:
        """See whether the connection is still there, and close it; return what was said."""
        if not self.is_closed:
            self.is_closed = self.wire.is_closed_within(SILENT_SECONDS)
        self.wire.close()
        answer = {'said': {str(n): each for n, each in enumerate(self.said)}}
        return {'outcome': 'closed' if self.is_closed else 'open', 'answer': answer}


def _masked(key: str, value: Any) -> Any:
    if key == 'session_lifetime_ms' and value:
        return '<lifetime>'
    if key == 'error_message':
        return '<text>' if value else value
    return sorted(value) if key == 'mechanisms' else value


def _masked_token(token: bytes) -> str:
    text = token.decode('latin-1')
    return re.sub(r'(^|,)([rsv])=[^,]*', r'\1\2=', text)


def handshake(talk: Talk, mechanism: str = 'PLAIN', version: Optional[int] = None) -> Any:
    """Name a mechanism."""
    return talk.ask(ApiKey.SASL_HANDSHAKE, {'mechanism': mechanism}, version)


def authenticate(talk: Talk, token: bytes, version: Optional[int] = None) -> Any:
    """Send a token; what is random in the answer is masked."""
    answer = talk.ask(ApiKey.SASL_AUTHENTICATE, {'auth_bytes': token}, version)
    if answer is not None and 'answer' in talk.said[-1]:
        talk.said[-1]['answer']['auth_bytes'] = _masked_token(bytes(answer.auth_bytes))
    return answer


def ask_versions(talk: Talk, **fields: Any) -> Any:
    """Ask for the versions of APIs."""
    software = {'client_software_name': 'x', 'client_software_version': '1', **fields}
    version = served_versions(ApiKey.API_VERSIONS, talk.release)[-1]
    return talk.ask(ApiKey.API_VERSIONS, software if version >= 3 else {}, version)


def metadata(talk: Talk) -> Any:
    """Ask for no topics; what the answer is else is not compared."""
    answer = talk.ask(ApiKey.METADATA, {'topics': []}, 1 if talk.release.version < (4, 0) else 4)
    if 'answer' in talk.said[-1]:
        talk.said[-1]['answer'] = {'topics': talk.said[-1]['answer']['topics']}
    return answer


ALICE = plain_token('alice', PASSWORDS['alice'])


def _plain(token: bytes, version: Optional[int] = None) -> Callable[[Talk], None]:
    def talk_plain(talk: Talk) -> None:
        handshake(talk)
        authenticate(talk, token, version)
        metadata(talk)

    return talk_plain


def _scram(
    mechanism: str,
    user: str = SCRAM_USER,
    password: str = SCRAM_PASSWORD,
    change: Callable[[bytes], bytes] = lambda token: token,
    **options: Any,
) -> Callable[[Talk], None]:
    def talk_scram(talk: Talk) -> None:
        client = ScramClient(mechanism, user, password, **options)
        handshake(talk, mechanism)
        answer = authenticate(talk, client.first())
        if answer is not None and not answer.error_code:
            authenticate(talk, change(client.last(bytes(answer.auth_bytes))))
            metadata(talk)

    return talk_scram


def _bare_scram(talk: Talk) -> None:
    client = ScramClient('SCRAM-SHA-256', SCRAM_USER, SCRAM_PASSWORD)
    handshake(talk, 'SCRAM-SHA-256', 0)
    answer = talk.bare(client.first())
    if answer is not None:
        talk.bare(client.last(answer))
        metadata(talk)


def _oauth(
    make: Callable[[int], str], start: str = 'n,,\x01auth=Bearer ', end: str = '\x01\x01'
) -> Callable[[Talk], None]:
    def talk_oauth(talk: Talk) -> None:
        handshake(talk, 'OAUTHBEARER')
        token = start + make(int(time.time() * 1000)) + end
        answer = authenticate(talk, token.encode())
        if answer is not None and not answer.error_code and answer.auth_bytes:
            authenticate(talk, b'\x01')
        metadata(talk)

    return talk_oauth


def _steps(*steps: Callable[[Talk], Any]) -> Callable[[Talk], None]:
    def talk_steps(talk: Talk) -> None:
        for step in steps:
            if not talk.is_closed:
                step(talk)

    return talk_steps


def _jwt(header: str, claims: str, signature: str = '') -> str:
    parts = [base64.urlsafe_b64encode(each.encode()).rstrip(b'=') for each in (header, claims)]
    return '%s.%s.%s' % (parts[0].decode(), parts[1].decode(), signature)


class Dialogue(NamedTuple):
    """A way to log in, or not to; with the first release that can."""

    name: str
    hold: Callable[[Talk], None]
    since: Tuple[int, ...] = (1, 0)


DIALOGUES = [
    *(
        Dialogue('plain in v%d' % v, _plain(ALICE, v), since)
        for v, since in ((0, (1, 0)), (1, (2, 2)), (2, (2, 5)))
    ),
    Dialogue('plain, wrong password', _plain(plain_token('alice', 'wrong'))),
    Dialogue('plain, unknown user', _plain(plain_token('nobody', 'wrong'))),
    Dialogue('plain, no user', _plain(plain_token('', 'x'))),
    Dialogue('plain, no password', _plain(plain_token('alice', ''))),
    Dialogue('plain, same id', _plain(plain_token('alice', 'alice-secret', 'alice'))),
    Dialogue('plain, other id', _plain(plain_token('alice', 'alice-secret', 'bob'))),
    Dialogue('plain, two parts', _plain(b'alice\0alice-secret')),
    Dialogue('plain, four parts', _plain(b'\0alice\0alice-secret\0')),
    Dialogue('plain, nothing', _plain(b'')),
    Dialogue(
        'plain, bare',
        _steps(lambda t: handshake(t, 'PLAIN', 0), lambda t: t.bare(ALICE), metadata),
        (0, 10),
    ),
    Dialogue(
        'plain, bare, wrong password',
        _steps(lambda t: handshake(t, 'PLAIN', 0), lambda t: t.bare(b'\0alice\0wrong'), metadata),
        (0, 10),
    ),
    Dialogue('no such mechanism', _steps(lambda t: handshake(t, 'GSSAPI'), metadata)),
    Dialogue('no mechanism', _steps(lambda t: handshake(t, ''), metadata)),
    Dialogue('no handshake', _steps(lambda t: authenticate(t, ALICE))),
    Dialogue('no login', _steps(metadata)),
    Dialogue('versions, no login', _steps(ask_versions, metadata)),
    Dialogue('versions twice', _steps(ask_versions, ask_versions, handshake)),
    Dialogue(
        'versions that are not told',
        _steps(lambda t: t.version_99(ApiKey.API_VERSIONS), ask_versions, handshake),
    ),
    Dialogue(
        'versions with bad software',
        _steps(
            lambda t: ask_versions(t, client_software_name='!'),
            ask_versions,
            handshake,
            lambda t: authenticate(t, ALICE),
        ),
        (2, 4),
    ),
    Dialogue('versions after handshake', _steps(handshake, ask_versions)),
    Dialogue('handshake twice', _steps(handshake, handshake, lambda t: authenticate(t, ALICE))),
    Dialogue('metadata for a token', _steps(handshake, metadata)),
    Dialogue(
        'after a login',
        _steps(
            handshake,
            lambda t: authenticate(t, ALICE),
            ask_versions,
            handshake,
            lambda t: authenticate(t, ALICE),
            metadata,
        ),
    ),
    Dialogue('a token of GSSAPI', _steps(lambda t: t.bare(b'\x60\x28\x06\x09' + b'\0' * 40))),
    Dialogue('a token of PLAIN', _steps(lambda t: t.bare(ALICE))),
    *(
        Dialogue(name + after, _scram(name, **options), (2, 7))
        for name in ('SCRAM-SHA-256', 'SCRAM-SHA-512')
        for after, options in (
            ('', {}),
            (', wrong password', {'password': 'wrong'}),
            (', unknown user', {'user': 'nobody'}),
            (', tokens', {'extensions': ',tokenauth=true'}),
            (', no tokens', {'extensions': ',tokenauth=false'}),
            (', other id', {'header': 'n,a=bob,'}),
            (', same id', {'header': 'n,a=sam,'}),
            (', channel binding', {'header': 'p=tls-unique,,'}),
            (', other nonce', {'change': lambda token: token.replace(b'r=fyko', b'r=fyka')}),
            (', no proof', {'change': lambda token: token[: token.index(b',p=')]}),
            (', bad proof', {'change': lambda token: token[:-6] + b'AAAAA='}),
        )
    ),
    Dialogue('SCRAM, bare', _bare_scram, (2, 7)),
    Dialogue('oauth', _oauth(lambda now: unsigned_token('olga', now + 60000)), (2, 0)),
    Dialogue('oauth, issued', _oauth(lambda now: unsigned_token('o', now + 9000, now)), (2, 0)),
    Dialogue('oauth, old', _oauth(lambda now: unsigned_token('olga', now - 1)), (2, 0)),
    Dialogue(
        'oauth, early', _oauth(lambda now: unsigned_token('o', now + 99999, now + 50000)), (2, 0)
    ),
    Dialogue('oauth, no claims', _oauth(lambda now: _jwt('{"alg":"none"}', '{}')), (2, 0)),
    Dialogue(
        'oauth, no user',
        _oauth(lambda now: _jwt('{"alg":"none"}', '{"exp":%d}' % (now // 1000 + 60))),
        (2, 0),
    ),
    Dialogue(
        'oauth, text for a time',
        _oauth(lambda now: _jwt('{"alg":"none"}', '{"sub":"o","exp":"later"}')),
        (2, 0),
    ),
    Dialogue(
        'oauth, signed',
        _oauth(
            lambda now: _jwt('{"alg":"none"}', '{"sub":"o","exp":%d}' % (now // 1000 + 60), 'c2ln')
        ),
        (2, 0),
    ),
    Dialogue('oauth, no token', _oauth(lambda now: 'abc'), (2, 0)),
    Dialogue(
        'oauth, other scheme',
        _oauth(lambda now: unsigned_token('o', now + 60000), 'n,,\x01auth=Basic '),
        (2, 0),
    ),
    Dialogue(
        'oauth, same id',
        _oauth(lambda now: unsigned_token('o', now + 60000), 'n,a=o,\x01auth=Bearer '),
        (2, 0),
    ),
    Dialogue(
        'oauth, other id',
        _oauth(lambda now: unsigned_token('o', now + 60000), 'n,a=x,\x01auth=Bearer '),
        (2, 0),
    ),
    Dialogue(
        'oauth, extension',
        _oauth(lambda now: unsigned_token('o', now + 60000), end='\x01traceId=1\x01\x01'),
        (2, 0),
    ),
    Dialogue('oauth, nothing', _oauth(lambda now: '', '', ''), (2, 0)),
]


def of_dialogues(address: Tuple[str, int], release: BrokerRelease, only: str = '') -> Recording:
    """Log in in all ways; return what was said. Users of SCRAM were made before.

    Arguments: only: parts of the names of those that are wanted, with commas between.
    """
    recording: Recording = {}
    for label, dialogue in dialogues(release):
        if is_wanted(label, only):
            talk = Talk(address, release)
            dialogue.hold(talk)
            recording[label + '/ask'] = talk.end()
    return recording


def dialogues(release: BrokerRelease) -> Iterator[Tuple[str, Dialogue]]:
    """Yield the dialogues that a release can hold, with what recordings call them."""
    for dialogue in DIALOGUES:
        if dialogue.since <= release.version:
            yield 'login: ' + dialogue.name, dialogue
