"""ACLs, quotas, users and tokens are told and changed as brokers do it."""

from __future__ import annotations

import pytest

from kafka.protocol.admin.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from kafka.protocol.admin.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    ComponentData,
    DescribeClientQuotasRequest,
    EntityData,
    OpData,
)
from kafka.protocol.admin.tokens import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from kafka.protocol.admin.users import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from kafka.testing import errors
from kafka.testing.security import acls
from test.testing.drive import Driver


def versions(driver, request):
    low, high = driver.state.release.served[request.api_key]
    return range(low, high + 1)


# ------------------------------------------------------------ ACLs


def creation(name='t', pattern=acls.LITERAL, kind=acls.TOPIC, who='User:a', operation=acls.READ):
    return AclCreation(kind, name, pattern, who, '*', operation, acls.ALLOW)


def create(driver, *creations, version=None):
    response = driver.ask(CreateAclsRequest(list(creations)), version)
    return [each.error_code for each in response.results]


def everything(pattern=acls.ANY):
    return DescribeAclsRequest(acls.ANY, None, pattern, None, None, acls.ANY, acls.ANY)


@pytest.mark.parametrize('release', ['0.11', '2.8', '4.4'])
def test_every_version_creates_tells_and_deletes_acls(release):
    driver = Driver(release, authorizer=True, super_users=('ANONYMOUS',))
    for version in versions(driver, CreateAclsRequest):
        pattern = acls.ANY if version else acls.LITERAL
        assert create(driver, creation(), version=version) == [errors.NONE]
        response = driver.ask(everything(pattern), version)
        [resource] = response.resources
        assert (resource.resource_name, resource.acls[0].principal) == ('t', 'User:a')
        wanted = DeleteAclsFilter(acls.ANY, None, pattern, None, None, acls.ANY, acls.ANY)
        [result] = driver.ask(DeleteAclsRequest([wanted]), version).filter_results
        assert [acl.resource_name for acl in result.matching_acls] == ['t']
        assert driver.state.acls == set()


def test_without_an_authorizer_there_are_no_acls():
    driver = Driver()
    assert create(driver, creation()) == [errors.SECURITY_DISABLED]
    assert driver.ask(everything()).error_code == errors.SECURITY_DISABLED
    wanted = DeleteAclsFilter(acls.ANY, None, acls.ANY, None, None, acls.ANY, acls.ANY)
    [result] = driver.ask(DeleteAclsRequest([wanted])).filter_results
    assert result.error_code == errors.SECURITY_DISABLED


def test_acls_of_one_resource_stand_together():
    driver = Driver(authorizer=True, super_users=('ANONYMOUS',))
    create(driver, creation('b'), creation('a'), creation('b', operation=acls.WRITE))
    found = driver.ask(everything()).resources
    assert [(each.resource_name, len(each.acls)) for each in found] == [('a', 1), ('b', 2)]


@pytest.mark.parametrize(
    ('bad', 'code', 'with_zookeeper'),
    [
        (creation(''), errors.INVALID_REQUEST, errors.INVALID_REQUEST),
        (creation(kind=acls.CLUSTER), errors.INVALID_REQUEST, errors.INVALID_REQUEST),
        (creation(pattern=9), errors.INVALID_REQUEST, errors.INVALID_REQUEST),
        (creation(pattern=acls.MATCH), errors.UNKNOWN_SERVER_ERROR, errors.UNKNOWN_SERVER_ERROR),
        (creation(pattern=acls.ANY), errors.UNKNOWN_SERVER_ERROR, errors.UNKNOWN_SERVER_ERROR),
        (creation(operation=acls.ANY), errors.UNKNOWN_SERVER_ERROR, errors.UNKNOWN_SERVER_ERROR),
        (creation(who='alice'), errors.INVALID_REQUEST, errors.UNKNOWN_SERVER_ERROR),
    ],
)
def test_bad_acls_are_refused(bad, code, with_zookeeper):
    for release, expected in (('4.4', code), ('2.8', with_zookeeper)):
        driver = Driver(release, authorizer=True, super_users=('ANONYMOUS',))
        assert create(driver, bad, creation()) == [expected, errors.NONE]
        assert len(driver.state.acls) == 1


@pytest.mark.parametrize('release', ['0.11', '4.4'])
def test_numbers_for_unknown_close_the_connection_since_2_0(release):
    driver = Driver(release, authorizer=True, super_users=('ANONYMOUS',))
    request = everything()
    request.pattern_type_filter = acls.LITERAL
    request.operation = 0
    if release == '0.11':
        assert driver.ask(request).resources == []
    else:
        with pytest.raises(AssertionError, match='closed'):
            driver.ask(request)


def test_numbers_without_meaning_match_nothing():
    driver = Driver(authorizer=True, super_users=('ANONYMOUS',))
    create(driver, creation())
    request = everything()
    request.operation = 99
    assert driver.ask(request).resources == []


# ------------------------------------------------------------ quotas


def entity(**parts):
    return [EntityData(kind.replace('_', '-'), name) for kind, name in parts.items()]


def set_quota(driver, parts, *ops, validate_only=False, version=None):
    entry = AlterClientQuotasRequestEntryData(parts, list(ops))
    response = driver.ask(AlterClientQuotasRequest([entry], validate_only), version)
    return response.entries[0].error_code


def rate(value, key='producer_byte_rate', remove=False):
    return OpData(key, value, remove)


def quotas(driver, *components, strict=False, version=None):
    response = driver.ask(DescribeClientQuotasRequest(list(components), strict), version)
    if response.error_code:
        return response.error_code
    return [[each.entity_name for each in entry.entity] for entry in response.entries]


def test_quotas_are_set_told_and_removed():
    driver = Driver()
    for version in versions(driver, AlterClientQuotasRequest):
        assert set_quota(driver, entity(user='a'), rate(5.0), version=version) == errors.NONE
        assert quotas(driver, version=version) == [['a']]
        assert set_quota(driver, entity(user='a'), rate(0.0, remove=True)) == errors.NONE
        assert quotas(driver) == []


def test_quotas_are_found_by_their_parts():
    driver = Driver()
    for parts in (
        {'user': 'a'},
        {'user': None},
        {'user': 'a', 'client_id': 'c'},
        {'ip': '1.1.1.1'},
    ):
        key = 'connection_creation_rate' if 'ip' in parts else 'producer_byte_rate'
        assert set_quota(driver, entity(**parts), rate(5.0, key)) == errors.NONE
    assert quotas(driver, ComponentData('user', 0, 'a')) == [['a'], ['a', 'c']]
    assert quotas(driver, ComponentData('user', 0, 'a'), strict=True) == [['a']]
    assert quotas(driver, ComponentData('user', 1, None)) == [[None]]
    assert quotas(driver, ComponentData('user', 2, None)) == [['a'], [None], ['a', 'c']]
    assert quotas(driver, ComponentData('ip', 2, None)) == [['1.1.1.1']]


@pytest.mark.parametrize(
    'components, code',
    [
        ([ComponentData('', 2, None)], errors.INVALID_REQUEST),
        ([ComponentData('planet', 2, None)], errors.UNSUPPORTED_VERSION),
        ([ComponentData('user', 7, None)], errors.INVALID_REQUEST),
        ([ComponentData('user', 0, None)], errors.INVALID_REQUEST),
        ([ComponentData('user', 2, None)] * 2, errors.INVALID_REQUEST),
    ],
)
def test_bad_filters_of_quotas_are_refused(components, code):
    assert quotas(Driver(), *components) == code


@pytest.mark.parametrize(
    'parts, op',
    [
        ({}, rate(1.0)),
        ({'planet': 'x'}, rate(1.0)),
        ({'user': ''}, rate(1.0)),
        ({'ip': '1.1.1.1', 'user': 'x'}, rate(1.0)),
        ({'ip': '1.1.1.1'}, rate(1.0)),
        ({'user': 'x'}, rate(1.0, 'no.such')),
        ({'user': 'x'}, rate(0.0)),
        ({'user': 'x'}, rate(float('nan'))),
        ({'user': 'x'}, rate(1.5)),
        ({'user': 'x'}, rate(float('inf'))),
    ],
)
def test_bad_quotas_are_refused(parts, op):
    driver = Driver()
    assert set_quota(driver, entity(**parts), op) == errors.INVALID_REQUEST
    assert driver.state.quotas == {}


def test_quotas_can_be_tried():
    driver = Driver()
    assert set_quota(driver, entity(user='a'), rate(5.0), validate_only=True) == errors.NONE
    assert driver.state.quotas == {}


# ------------------------------------------------------------ SCRAM


def upsertion(name='a', mechanism=1, iterations=4096):
    return ScramCredentialUpsertion(name, mechanism, iterations, b'salt', b'password')


def alter_users(driver, *changes):
    response = driver.ask(
        AlterUserScramCredentialsRequest(
            [each for each in changes if isinstance(each, ScramCredentialDeletion)],
            [each for each in changes if isinstance(each, ScramCredentialUpsertion)],
        )
    )
    return {each.user: each.error_code for each in response.results}


def users(driver, *names):
    asked = [UserName(name) for name in names] or None
    results = driver.ask(DescribeUserScramCredentialsRequest(asked)).results
    return [
        (each.user, each.error_code, [info.mechanism for info in each.credential_infos])
        for each in results
    ]


@pytest.mark.parametrize('release', ['2.8', '4.4'])
def test_credentials_are_set_told_and_deleted(release):
    driver = Driver(release)
    assert alter_users(driver, upsertion(), upsertion('b')) == {'a': 0, 'b': 0}
    assert alter_users(driver, upsertion(mechanism=2)) == {'a': 0}
    assert users(driver) == [('a', 0, [1, 2]), ('b', 0, [1])]
    assert alter_users(driver, ScramCredentialDeletion('a', 1)) == {'a': errors.NONE}
    assert users(driver, 'a') == [('a', 0, [2])]
    assert users(driver, 'x', 'b', 'b') == [
        ('x', errors.RESOURCE_NOT_FOUND, []),
        ('b', errors.DUPLICATE_RESOURCE, []),
    ]


@pytest.mark.parametrize(('release', 'code'), [('2.8', 0), ('4.4', errors.DUPLICATE_RESOURCE)])
def test_kraft_takes_one_change_of_a_user(release, code):
    driver = Driver(release)
    assert alter_users(driver, upsertion(), upsertion(mechanism=2)) == {'a': code}
    assert bool(users(driver)) is not bool(code)


@pytest.mark.parametrize(
    'changes, code',
    [
        ([upsertion('')], errors.UNACCEPTABLE_CREDENTIAL),
        ([upsertion(iterations=4095)], errors.UNACCEPTABLE_CREDENTIAL),
        ([upsertion(iterations=16385)], errors.UNACCEPTABLE_CREDENTIAL),
        ([upsertion(mechanism=3)], errors.UNSUPPORTED_SASL_MECHANISM),
        ([upsertion(), upsertion()], errors.DUPLICATE_RESOURCE),
        ([ScramCredentialDeletion('a', 2)], errors.RESOURCE_NOT_FOUND),
    ],
)
def test_bad_credentials_change_nothing(changes, code):
    driver = Driver()
    assert list(alter_users(driver, *changes).values()) == [code]
    assert driver.state.scram == {}


def test_credentials_are_not_shown():
    driver = Driver()
    alter_users(driver, upsertion())
    assert 'password' not in repr(driver.state.scram)


# ------------------------------------------------------------ tokens


def token_driver(release='4.4', **settings):
    driver = Driver(release, **settings)
    client = driver.client()
    client.connection.principal = 'User:alice'
    driver._clients[0] = client
    return driver


@pytest.mark.parametrize('release', ['1.1', '2.8', '4.4'])
def test_every_version_of_tokens(release):
    driver = token_driver(release, delegation_token_secret='s')
    for version in versions(driver, CreateDelegationTokenRequest):
        request = CreateDelegationTokenRequest(
            renewers=[CreatableRenewers('User', 'bob')], max_lifetime_ms=-1
        )
        token = driver.ask(request, version)
        assert (token.error_code, token.principal_name) == (errors.NONE, 'alice')
        older = min(version, driver.state.release.served[RenewDelegationTokenRequest.api_key][1])
        assert driver.ask(RenewDelegationTokenRequest(token.hmac, 1000), older).error_code == 0
        [found] = driver.ask(DescribeDelegationTokenRequest(None), version).tokens
        assert (found.token_id, found.renewers[0].principal_name) == (token.token_id, 'bob')
        assert driver.ask(ExpireDelegationTokenRequest(token.hmac, -1), older).error_code == 0
        assert driver.ask(DescribeDelegationTokenRequest(None), version).tokens == []


def test_tokens_need_a_login_and_a_secret():
    request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    assert Driver().ask(request).error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert token_driver().ask(request).error_code == errors.DELEGATION_TOKEN_AUTH_DISABLED
    for other in (
        RenewDelegationTokenRequest(b'x', 1),
        ExpireDelegationTokenRequest(b'x', 1),
        DescribeDelegationTokenRequest(None),
    ):
        assert token_driver().ask(other).error_code == errors.DELEGATION_TOKEN_AUTH_DISABLED


def test_renewers_are_users():
    driver = token_driver(delegation_token_secret='s')
    request = CreateDelegationTokenRequest(
        renewers=[CreatableRenewers('Group', 'x')], max_lifetime_ms=-1
    )
    assert driver.ask(request).error_code == errors.INVALID_PRINCIPAL_TYPE
