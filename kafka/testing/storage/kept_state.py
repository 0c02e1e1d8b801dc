"""Topics, configs and users of a durable cluster, to and from the journal.

Also features, reassignments, ACLs, quotas, SCRAM credentials and delegation tokens. Offsets and
transactions are in kept_offsets.py, groups in kept_groups.py, records in logs/stored_log.py.
"""

from __future__ import annotations

import base64
from typing import Any, Dict, List, Mapping, Optional

from kafka.testing.logs.segments import StorageError
from kafka.testing.security.acls import Acl
from kafka.testing.security.scram import ScramCredential
from kafka.testing.security.tokens import Principal, Token, Tokens
from kafka.testing.state import NO_LEADER, ClusterState, Partition, Topic
from kafka.testing.storage.journal import Journal, Key

Values = Mapping[Key, Any]


def text_of(data: Optional[bytes]) -> Optional[str]:
    """Return bytes as Base64."""
    return None if data is None else base64.b64encode(data).decode('ascii')


def bytes_of(text: Optional[str]) -> Optional[bytes]:
    """Return the bytes of a Base64 text."""
    return None if text is None else base64.b64decode(text)


def note_state(journal: Journal, state: ClusterState) -> None:
    """Put everything into the journal; unchanged values are not written again."""
    put_all = journal.put_all
    put_all('topic', {('topic', name): _topic(each) for name, each in state.topics.items()})
    put_all('config', {('config', *place): dict(own) for place, own in state.configs.items()})
    put_all('acl', {('acl', *acl): 1 for acl in state.acls})
    put_all('quota', {('quota', entity): values for entity, values in state.quotas.items()})
    put_all('user', {('user', name): _credentials(found) for name, found in state.scram.items()})
    journal.put(('features',), [state.features_epoch, state.features])
    moves = [[*place, nodes] for place, nodes in state.reassignments.items()]
    journal.put(('moves',), moves)
    if state.tokens is not None:
        tokens = state.tokens.by_id()
        put_all('token', {('token', name): _token(token) for name, token in tokens.items()})


def restore_state(values: Values, state: ClusterState) -> None:
    """Restore the values of the journal, in addition to those of this start.

    Raises: StorageError for partitions on brokers that do not exist.
    """
    for key, value in values.items():
        kind, rest = key[0], key[1:]
        if kind == 'topic':
            _restore_topic(state, rest[0], value)
        elif kind == 'config':
            state.configs[rest[0], rest[1]] = dict(value)
        elif kind == 'acl':
            state.acls.add(Acl(*rest))
        elif kind == 'quota':
            state.quotas[rest[0]] = dict(value)
        elif kind == 'user':
            state.scram.setdefault(rest[0], _restored_credentials(value))
        elif kind == 'features':
            state.features_epoch, state.features = value[0], dict(value[1])
        elif kind == 'moves':
            state.reassignments = {(name, index): nodes for name, index, nodes in value}
    _restore_tokens(values, state)


def _topic(topic: Topic) -> List[Any]:
    partitions = [
        [each.index, each.replicas, each.isr, each.leader, each.leader_epoch]
        for each in topic.partitions
    ]
    return [topic.topic_id.hex(), topic.configs, partitions]


def _restore_topic(state: ClusterState, name: str, value: List[Any]) -> None:
    topic_id, configs, partitions = value
    made = []
    for index, replicas, isr, leader, epoch in partitions:
        missing = [node for node in replicas if node not in state.nodes]
        if missing:
            raise StorageError(
                'partition %s-%d has a replica on broker %d, and there are %d brokers:'
                ' start the cluster with brokers=%d'
                % (name, index, missing[0], len(state.nodes), max(missing) + 1)
            )
        partition = Partition(name, index, replicas)
        partition.isr, partition.leader = isr, leader
        # The leader has been down, however briefly: the next one needs an epoch of its own.
        partition.leader_epoch = epoch + 1
        partition.rejoin(state.alive)
        if partition.leader == NO_LEADER:
            partition.elect(state.alive)
        made.append(partition)
    topic = Topic(name, bytes.fromhex(topic_id), made)
    topic.configs.update(configs)
    state.add_topic(topic)


def _credentials(found: Dict[int, Any]) -> List[Any]:
    return [
        [mechanism, each.iterations, text_of(each.salt), text_of(each.salted_password)]
        for mechanism, each in sorted(found.items())
    ]


def _restored_credentials(value: List[Any]) -> Dict[int, ScramCredential]:
    return {
        mechanism: ScramCredential(iterations, bytes_of(salt) or b'', bytes_of(password) or b'')
        for mechanism, iterations, salt, password in value
    }


def _token(token: Token) -> List[Any]:
    # The password follows from the secret, which is not stored.
    return [
        list(token.owner),
        list(token.requester),
        [list(each) for each in token.renewers],
        token.issued_ms,
        token.last_ms,
        token.expires_ms,
    ]


def _restore_tokens(values: Values, state: ClusterState) -> None:
    secret = state.defaults.delegation_token_secret
    found = {key[1]: value for key, value in values.items() if key[0] == 'token'}
    if not found or secret is None:  # without a secret there are no tokens
        return
    state.tokens = Tokens(state, secret)
    for token_id, value in found.items():
        owner, requester, renewers, issued_ms, last_ms, expires_ms = value
        token = Token(
            token_id,
            state.tokens.password_of(token_id),
            Principal(*owner),
            Principal(*requester),
            tuple(Principal(*each) for each in renewers),
            issued_ms,
            last_ms,
        )
        token.expires_ms = expires_ms
        state.tokens.take_back(token)
