"""Ask secured brokers as several people, and log in in good and bad ways; write down what they say.

Owns the people, their rights, and the recordings. What is asked is in secured_steps.py and
secured_admin.py, logins are in secured_logins.py. ``python -m test.differential.secured`` compares.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from kafka.protocol.api import ApiKey
from kafka.testing import Cluster
from kafka.testing.releases import BrokerRelease, broker_release
from kafka.testing.security import acls
from kafka.testing.security.scram import ScramCredential
from test.differential import recordings
from test.differential.answers import plain
from test.differential.compare import compare, explained
from test.differential.runner import NOT_YET, Context, Patience, Recording, Wire, error_codes
from test.differential.script import request_of, served_versions
from test.differential.secured_admin import CLUSTER_REQUESTS, TRANSACTION_REQUESTS
from test.differential.secured_deviations import DEVIATIONS
from test.differential.secured_logins import (
    PASSWORDS,
    SCRAM_PASSWORD,
    SCRAM_USER,
    SILENT_SECONDS,
    Talk,
    of_dialogues,
)
from test.differential.secured_steps import (
    GROUP_REQUESTS,
    GROUPS,
    IDS,
    RECORDS,
    THERE,
    TOPIC_REQUESTS,
    Ask,
)
from test.testing.security.sasl.clients import plain as plain_token

FOLDER = Path(__file__).parent / 'recorded_secured'
MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER']
TOKEN_SECRET = 'a secret of the brokers'
EMBEDDED_SECONDS = 0.1
#: Until a real broker knows the rights that were just given.
RIGHTS_SECONDS = 1.0

TOPIC, GROUP, CLUSTER, TRANSACTION = acls.TOPIC, acls.GROUP, acls.CLUSTER, acls.TRANSACTIONAL_ID
_ABSENT = (acls.READ, acls.WRITE, acls.DELETE, acls.ALTER, acls.ALTER_CONFIGS)
#: (who, kind, name, operations); a name that ends in an asterisk is a prefix.
RIGHTS: List[Tuple[str, int, str, Sequence[int]]] = [
    ('alice', TOPIC, 'full', [acls.ALL]),
    ('alice', TOPIC, 'seen', [acls.DESCRIBE]),
    ('alice', TOPIC, 'absent-full', _ABSENT),
    ('alice', TOPIC, 'made-*', [acls.CREATE]),
    ('alice', GROUP, 'g-full', [acls.ALL]),
    ('alice', GROUP, 'g-seen', [acls.DESCRIBE]),
    ('alice', GROUP, 'g-new', [acls.READ]),
    ('alice', TRANSACTION, 'x-full', [acls.ALL]),
    ('alice', TRANSACTION, 'x-seen', [acls.DESCRIBE]),
    ('carol', CLUSTER, acls.CLUSTER_NAME, [acls.DESCRIBE, acls.ALTER, acls.DESCRIBE_CONFIGS]),
    ('carol', TOPIC, 'hidden', [acls.DELETE]),
    ('dave', CLUSTER, acls.CLUSTER_NAME, [acls.IDEMPOTENT_WRITE, acls.CLUSTER_ACTION]),
    ('dave', CLUSTER, acls.CLUSTER_NAME, [acls.ALTER_CONFIGS]),
    ('dave', TOPIC, 'seen', [acls.ALTER, acls.DESCRIBE_CONFIGS]),
]
#: What each is asked for, and whether in all versions.
PEOPLE: List[Tuple[str, Sequence[Ask], bool]] = [
    (
        'alice',
        [*RECORDS, *TOPIC_REQUESTS, *GROUP_REQUESTS, *TRANSACTION_REQUESTS, *CLUSTER_REQUESTS],
        True,
    ),
    (
        'bob',
        [*RECORDS, *TOPIC_REQUESTS, *GROUP_REQUESTS, *TRANSACTION_REQUESTS, *CLUSTER_REQUESTS],
        False,
    ),
    (
        'carol',
        [
            each
            for each in [*TOPIC_REQUESTS, *GROUP_REQUESTS, *CLUSTER_REQUESTS]
            if each.api not in (20, 32, 35, 55, 64, 74, 81)
        ],
        False,
    ),
    (
        'dave',
        [
            each
            for each in [*RECORDS, *TRANSACTION_REQUESTS, *CLUSTER_REQUESTS]
            if each.api != 74 and each.name != 'fetch as a follower'
        ],
        False,
    ),
]


class PersonWire(Wire):
    """A connection of somebody who logs in first."""

    def __init__(self, address: Tuple[str, int], release: BrokerRelease, user: str) -> None:
        super().__init__(address)
        self._release = release
        self._user = user

    def exchange(self, frames: bytes, seconds: float) -> Any:
        """Log in if that was not done, and send bytes."""
        if self._socket is None:
            talk = Talk(self.address, self._release)
            is_bare = self._release.version < (1, 0)
            talk.ask(ApiKey.SASL_HANDSHAKE, {'mechanism': 'PLAIN'}, 0 if is_bare else 1)
            token = plain_token(self._user, PASSWORDS[self._user])
            if is_bare:
                talk.bare(token)
            else:
                talk.ask(ApiKey.SASL_AUTHENTICATE, {'auth_bytes': token})
            self._socket = talk.wire._socket
        return super().exchange(frames, seconds)


class Person(Context):
    """Asks as somebody. ``ids`` are those of the topics that there are."""

    def __init__(
        self, address: Tuple[str, int], release: BrokerRelease, who: str, ids: Dict[str, bytes]
    ) -> None:
        super().__init__(PersonWire(address, release, who), release, Patience())
        self.who = who
        self.ids = ids

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def asked(self, ask: Ask, version: int) -> Dict[str, Any]:
        """Ask something; return what is written down."""
        fields = ask.fields(version, self)
        for _ in range(100):
            frames = self.frame(request_of(ask.api, fields, version), version)
            outcome, answer = self.exchange(ask.api, version, frames)
            if answer is None:
                return {'outcome': outcome}
            shown = _tidied(plain(answer, version, self.now_ms))
            if NOT_YET.isdisjoint(error_codes(shown)):
                break
            time.sleep(0.05)
        return {'outcome': outcome, 'answer': shown}


def _tidied(value: Any) -> Any:
    """Return an answer without texts, and lists of what has no name of its own in an order."""
    if isinstance(value, dict):
        return {
            key: '<text>' if key == 'error_message' and each else _tidied(each)
            for key, each in value.items()
        }
    if not isinstance(value, list):
        return value
    found = [_tidied(each) for each in value]
    if any(
        isinstance(each, dict) and (each.get('topic_id') == '<id>' or 'resource_type' in each)
        for each in found
    ):
        found.sort(key=lambda each: json.dumps(each, sort_keys=True))
    return found


# ---------------------------------------------------------------- preparations


def prepare(address: Tuple[str, int], release: BrokerRelease) -> Dict[str, bytes]:
    """Make users, topics, rights and offsets as an administrator; return the ids of the topics."""
    admin = Person(address, release, 'admin', {})
    if release.version >= (2, 7):
        for number, name in ((1, 'SCRAM-SHA-256'), (2, 'SCRAM-SHA-512')):
            made = {'name': SCRAM_USER, 'mechanism': number, **_credential(name)._asdict()}
            fields = {'deletions': [], 'upsertions': [made]}
            assert not admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, fields).results[0].error_code
    ids = {name: admin.topic_id(name) for name in THERE}
    creations = [
        {
            'resource_type': kind,
            'resource_name': name.rstrip('*'),
            'resource_pattern_type': acls.PREFIXED if name.endswith('*') else acls.LITERAL,
            'principal': 'User:' + who,
            'host': '*',
            'operation': operation,
            'permission_type': acls.ALLOW,
        }
        for who, kind, name, operations in RIGHTS
        for operation in operations
    ]
    admin.ask(ApiKey.CREATE_ACLS, {'creations': creations})
    parts = [{'partition_index': 0, 'committed_offset': 7, 'committed_metadata': ''}]
    topics = [{'name': name, 'partitions': parts} for name in THERE]
    for group in GROUPS:
        admin._coordinator(group, 0)
        fields = {'group_id': group, 'generation_id_or_member_epoch': -1, 'topics': topics}
        admin.ask(ApiKey.OFFSET_COMMIT, fields, 2)
    for name in IDS:
        admin._coordinator(name, 1)
    admin.close()
    return ids


def _credential(mechanism: str) -> ScramCredential:
    return ScramCredential.of(mechanism, SCRAM_PASSWORD, b'salt of twenty bytes')


def of_people(
    address: Tuple[str, int], release: BrokerRelease, ids: Dict[str, bytes], only: str = ''
) -> Recording:
    """Let everybody ask; return what they were told. ``prepare`` gave the ids of topics."""
    recording: Recording = {}
    for who, asks, in_all_versions in PEOPLE:
        person = Person(address, release, who, ids)
        for ask in asks:
            first, last = ask.versions
            versions = [v for v in served_versions(ask.api, release) if first <= v <= last]
            for version in versions if in_all_versions else versions[-1:]:
                name = '%s: %s-%d-v%d/ask' % (who, ask.name, ask.api, version)
                if only in name:
                    recording[name] = person.asked(ask, version)
        person.close()
    return recording


# ---------------------------------------------------------------- recordings


def kept(release: str) -> Path:
    """Return where the recording of a release is kept."""
    return FOLDER / (release + '.json.gz')


def of_embedded(release: str, only: str = '') -> Recording:
    """Ask an embedded broker; return what it said."""
    cluster = Cluster(
        version=release,
        num_partitions=2,
        sasl=PASSWORDS,
        mechanisms=[m for m in MECHANISMS if m != 'OAUTHBEARER' or release >= '2'],
        authorizer=True,
        super_users=('admin',),
        delegation_token_secret=TOKEN_SECRET,
        failed_authentication_delay_ms=10,
    )
    cluster.state.scram.clear()
    with cluster:
        host, port = cluster.bootstrap.rsplit(':', 1)
        return _of((host, int(port)), release, only, EMBEDDED_SECONDS)


def _of(
    address: Tuple[str, int], release: str, only: str, seconds: float, pause: float = 0.0
) -> Recording:
    about = broker_release(release)
    ids = prepare(address, about)
    time.sleep(pause)
    told = of_people(address, about, ids, only)
    return {**told, **of_dialogues(address, about, seconds, only)}


def of_real(release: str, only: str = '') -> Recording:
    """Start a secured real broker, ask it, stop it; return what it said."""
    # Late: the recordings are read where no real broker can run.
    from test.differential.secured_cluster import SecuredCluster

    with SecuredCluster(release, PASSWORDS, TOKEN_SECRET) as cluster:
        return _of(cluster.sasl_address, release, only, SILENT_SECONDS, RIGHTS_SECONDS)


def main(words: Optional[Sequence[str]] = None) -> int:
    """Print where the embedded broker differs; return 1 if it does without a reason."""
    parser = argparse.ArgumentParser(prog='python -m test.differential.secured')
    parser.add_argument('--release', required=True)
    parser.add_argument(
        '--record', type=Path, help='ask a real broker, and write the answers there'
    )
    parser.add_argument('--against', type=Path, help='a recording, instead of the one kept here')
    parser.add_argument('--only', default='', help='part of the names of what is wanted')
    parser.add_argument('--all', action='store_true', help='show explained differences too')
    options = parser.parse_args(words)
    if options.record:
        recordings.write(options.record, of_real(options.release, options.only))
        return 0
    real = recordings.read(options.against or kept(options.release))
    real = {name: entry for name, entry in real.items() if options.only in name}
    found = compare(real, of_embedded(options.release, options.only))
    version = broker_release(options.release).version
    if not options.all:
        found = [each for each in found if not explained(each, version, DEVIATIONS)]
    for each in found:
        sys.stdout.write('%s\n' % (each,))
    sys.stdout.write('%d answers, %d differences\n' % (len(real), len(found)))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
