"""How users secure a cluster."""

from __future__ import annotations

import pytest

from kafka.testing import Cluster, MemoryCluster, Tls
from kafka.testing.security.acls import (
    ALLOW,
    CLUSTER,
    CLUSTER_NAME,
    DENY,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    Acl,
)
from kafka.testing.security.tls import CertificateError


@pytest.mark.parametrize(
    ('settings', 'protocol'),
    [
        ({}, 'PLAINTEXT'),
        ({'tls': True}, 'SSL'),
        ({'sasl': {'alice': 'secret'}}, 'SASL_PLAINTEXT'),
        ({'mechanisms': ['OAUTHBEARER']}, 'SASL_PLAINTEXT'),
        ({'sasl': {}, 'tls': True}, 'SASL_SSL'),
    ],
)
def test_clients_are_told_how_to_connect(settings, protocol):
    cluster = Cluster(**settings)
    assert cluster.security_protocol == protocol
    assert (cluster.ca_file is not None) is ('tls' in settings)


def test_the_files_of_a_certificate_may_be_ones_own():
    cluster = Cluster(tls=Tls('a.pem', 'a.key'))
    assert cluster.ca_file == 'a.pem'
    with pytest.raises(CertificateError, match=r'a\.pem with the key a\.key: .*No such file'):
        cluster.start()


@pytest.mark.parametrize(
    ('settings', 'kind', 'reason'),
    [
        ({'version': '0.8.2', 'tls': True}, ValueError, r'0\.8\.2 has no TLS'),
        ({'version': '0.9', 'sasl': {'a': 'b'}}, ValueError, 'GSSAPI only'),
        ({'version': '0.10.0', 'mechanisms': ['SCRAM-SHA-256']}, ValueError, 'SCRAM-SHA-256'),
        ({'tls': 'file.pem'}, TypeError, 'tls must be'),
        ({'sasl': 'alice:secret'}, TypeError, 'not str'),
        ({'sasl': {'alice': b'secret'}}, TypeError, "see that of 'alice'"),
        ({'sasl': {'': 'secret'}}, ValueError, 'one character'),
        ({'sasl': {'alice': 'secret\udcff'}}, ValueError, "UTF-8 has: 'alice'"),
        ({'sasl': {'alice': ''}}, ValueError, "'alice'"),
        ({'sasl': {'alice': 'sec\0ret'}}, ValueError, "'alice'"),
    ],
)
def test_what_cannot_be_is_said_without_the_secret(settings, kind, reason):
    with pytest.raises(kind, match=reason) as caught:
        Cluster(**settings)
    assert 'secret' not in str(caught.value).replace('alice:secret', '')


def test_passwords_and_secrets_are_not_shown():
    cluster = Cluster(sasl={'alice': 'hunter2'}, delegation_token_secret='hunter2')
    state = cluster.state
    shown = [cluster, cluster.security, state, state.sasl, state.scram, state.defaults]
    assert 'hunter2' not in repr(shown)
    assert 'hunter2' not in repr(vars(cluster.security))


# ---------------------------------------------------------------- who may do what


@pytest.fixture
def cluster():
    return Cluster(authorizer=True)


def test_rights_are_given_and_taken(cluster):
    cluster.allow('alice', 'Read', 'write', topic='orders', group='readers-*')
    cluster.deny('*', 'READ', topic='*', host='10.0.0.1')
    everything = (TOPIC, 'orders', LITERAL), (GROUP, 'readers-', PREFIXED)
    assert cluster.state.acls == {
        Acl(*place, 'User:alice', '*', operation, ALLOW)
        for place in everything
        for operation in (READ, WRITE)
    } | {Acl(TOPIC, '*', LITERAL, 'User:*', '10.0.0.1', READ, DENY)}


def test_rights_to_the_cluster_have_no_name(cluster):
    cluster.allow('Group:admins', 'cluster_action', 'DescribeConfigs', cluster=True)
    assert {each[:4] for each in cluster.state.acls} == {
        (CLUSTER, CLUSTER_NAME, LITERAL, 'Group:admins')
    }


@pytest.mark.parametrize(
    ('operations', 'resources', 'kind', 'reason'),
    [
        (['Read'], {}, ValueError, 'what it is for'),
        ([], {'topic': 't'}, ValueError, 'name an operation'),
        (['Fly'], {'topic': 't'}, ValueError, "no operation 'Fly'"),
        (['Read'], {'topic': ''}, ValueError, 'has a name'),
        (['Read'], {'table': 't'}, TypeError, 'table'),
    ],
)
def test_rights_that_mean_nothing_are_told(cluster, operations, resources, kind, reason):
    with pytest.raises(kind, match=reason):
        cluster.allow('alice', *operations, **resources)
    assert not cluster.state.acls


def test_rights_that_nobody_looks_at_are_told():
    with pytest.raises(ValueError, match='authorizer=True'):
        Cluster().allow('alice', 'Read', topic='t')


def test_a_cluster_in_memory_is_secured_as_well():
    with MemoryCluster(sasl={'alice': 'secret'}, authorizer=True, super_users=['alice']) as cluster:
        assert cluster.security_protocol == 'SASL_PLAINTEXT'
