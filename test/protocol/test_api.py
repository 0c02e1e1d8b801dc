"""Headers, the table of APIs, and the choice of a version."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafka.errors import BufferUnderflowError, ProtocolError, UnsupportedVersionError
from kafka.protocol import api
from kafka.protocol.api import ApiKey, RequestHeader, Route
from kafka.protocol.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.consumer_protocol import ConsumerProtocolAssignment
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.sasl import SaslHandshakeRequest

REQUEST = FindCoordinatorRequest(key='g')


# --- requests -----------------------------------------------------------------------------------


def test_a_request_of_a_classic_version():
    assert api.encode_request(REQUEST, 0, 7, 'me') == b''.join(
        [
            b'\x00\x0a',  # API key
            b'\x00\x00',  # version
            b'\x00\x00\x00\x07',  # correlation id
            b'\x00\x02me',  # client id
            b'\x00\x01g',  # the body: key
        ]
    )


def test_a_request_of_a_flexible_version():
    """The client id stays a classic string, for old brokers must be able to read it."""
    assert api.encode_request(REQUEST, 3, 7, 'me') == b''.join(
        [
            b'\x00\x0a',  # API key
            b'\x00\x03',  # version
            b'\x00\x00\x00\x07',  # correlation id
            b'\x00\x02me',  # client id
            b'\x00',  # no tagged fields in the header
            b'\x02g',  # the body: key
            b'\x00',  # key_type
            b'\x00',  # no tagged fields
        ]
    )


def test_a_request_without_client_id():
    assert api.encode_request(REQUEST, 0, 7, None)[8:10] == b'\xff\xff'


@pytest.mark.parametrize('client_id', [None, '', 'me', 'ü'])
@pytest.mark.parametrize('version', range(7))
def test_requests_come_back(version, client_id):
    request = FindCoordinatorRequest() if version > 3 else REQUEST
    data = api.encode_request(request, version, -1, client_id)
    header = RequestHeader(ApiKey.FIND_COORDINATOR, version, -1, client_id)
    for wrap in (bytes, bytearray, memoryview):
        assert api.decode_request(wrap(data)) == (header, request)
        assert api.peek_request_header(wrap(data)) == header


def test_tagged_fields_of_a_request_header_are_skipped():
    data = api.encode_request(REQUEST, 3, 7, 'me')
    data = data[:12] + b'\x01\x09\x02ab' + data[13:]
    assert api.decode_request(data)[1] == REQUEST


def test_a_header_can_be_read_when_the_version_is_unknown():
    """A broker answers ApiVersions of any version, so it must see who asks."""
    data = b'\x00\x12\x00\x63\x00\x00\x00\x05\x00\x02me' + b'something newer'
    assert api.peek_request_header(data) == RequestHeader(ApiKey.API_VERSIONS, 99, 5, 'me')
    with pytest.raises(ProtocolError, match='ApiVersionsRequest has versions 0 to 5, not 99'):
        api.decode_request(data)


@pytest.mark.parametrize('size', range(12))
def test_a_header_cut_short_ends_too_early(size):
    data = api.encode_request(REQUEST, 0, 7, 'me')[:size]
    with pytest.raises(BufferUnderflowError):
        api.peek_request_header(data)


@pytest.mark.parametrize(
    'data, error',
    [
        (b'\x00\x0a\x00\x00\x00\x00\x00\x07\xff\xfe', ProtocolError),  # client id of length -2
        (b'\x00\x0a\x00\x00\x00\x00\x00\x07\x00\x01\xff', ProtocolError),  # not UTF-8
        (b'\x03\xe7\x00\x00\x00\x00\x00\x07\xff\xff', ProtocolError),  # API key 999
        (b'\x00\x0a\x00\x03\x00\x00\x00\x07\xff\xff', BufferUnderflowError),  # no tagged fields
        (b'\x00\x0a\x00\x03\x00\x00\x00\x07\xff\xff\x01\x09', BufferUnderflowError),  # cut inside
    ],
)
def test_a_malformed_request_is_refused(data, error):
    with pytest.raises(error):
        api.decode_request(data)


def test_a_header_that_does_not_fit_is_refused():
    with pytest.raises(ProtocolError, match='request header'):
        api.encode_request(REQUEST, 0, 2**31, 'me')
    with pytest.raises(ProtocolError, match='request header'):
        api.encode_request(REQUEST, 0, 1, 'x' * 40000)
    with pytest.raises(ProtocolError, match='correlation_id'):
        api.encode_response(FindCoordinatorResponse(), 0, 2**31)


@pytest.mark.parametrize(
    'wrong, error',
    [
        ({'request': None}, TypeError),
        ({'request': type(REQUEST)}, TypeError),
        ({'version': '0'}, TypeError),
        ({'version': None}, TypeError),
        ({'correlation_id': 'x'}, TypeError),
        ({'client_id': 5}, TypeError),
        ({'client_id': b'me'}, TypeError),
        ({'client_id': '\ud800'}, ProtocolError),
    ],
)
def test_a_wrong_argument_of_a_request_is_named(wrong, error):
    right = {'request': REQUEST, 'version': 0, 'correlation_id': 1, 'client_id': 'me'}
    with pytest.raises(error, match=next(iter(wrong)).replace('_', '[ _]')):
        api.encode_request(**{**right, **wrong})


@pytest.mark.parametrize('wrong', [{'response': 'x'}, {'version': '0'}, {'correlation_id': None}])
def test_a_wrong_argument_of_a_response_is_named(wrong):
    right = {'response': FindCoordinatorResponse(), 'version': 0, 'correlation_id': 1}
    with pytest.raises(TypeError, match=next(iter(wrong))):
        api.encode_response(**{**right, **wrong})


def test_data_inside_messages_is_no_request():
    with pytest.raises(ProtocolError, match='neither a request nor a response'):
        api.encode_request(ConsumerProtocolAssignment(assigned_partitions=[]), 0, 1, None)


# --- responses ----------------------------------------------------------------------------------


@pytest.mark.parametrize('version', range(7))
def test_responses_come_back(version):
    response = FindCoordinatorResponse(node_id=1, host='h', port=9)
    if version > 3:
        response = FindCoordinatorResponse(coordinators=[])
    data = api.encode_response(response, version, 77)
    assert api.decode_response(FindCoordinatorResponse, data, version) == (77, response)


def test_a_flexible_response_has_tagged_fields_in_its_header():
    response = FindCoordinatorResponse(coordinators=[])
    assert api.encode_response(response, 4, 1) == b''.join(
        [
            b'\x00\x00\x00\x01',  # correlation id
            b'\x00',  # no tagged fields in the header
            b'\x00\x00\x00\x00',  # throttle_time_ms
            b'\x01',  # coordinators: none
            b'\x00',  # no tagged fields
        ]
    )


def test_the_response_to_api_versions_never_has_tagged_fields_in_its_header():
    response = ApiVersionsResponse(error_code=0, api_keys=[])
    data = api.encode_response(response, 3, 1)
    assert data == b'\x00\x00\x00\x01' + response.encode(3)
    assert api.decode_response(ApiVersionsResponse, data, 3) == (1, response)


def test_a_refusal_of_api_versions_can_be_read_as_version_0():
    """A broker without the version answers in the layout of version 0, with its own range."""
    data = b''.join(
        [
            b'\x00\x00\x00\x01',  # correlation id
            b'\x00\x23',  # error_code: 35
            b'\x00\x00\x00\x01' + b'\x00\x12\x00\x00\x00\x02',  # api_keys: ApiVersions 0 to 2
        ]
    )
    _, response = api.decode_response(ApiVersionsResponse, data, 0)
    assert response.error_code == 35
    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [(18, 0, 2)]


@pytest.mark.parametrize('data', [b'', b'\x00\x00\x00', b'\x00\x00\x00\x01'])
def test_a_response_cut_short_ends_too_early(data):
    with pytest.raises(BufferUnderflowError):
        api.decode_response(FindCoordinatorResponse, data, 4)


# --- the table ----------------------------------------------------------------------------------


def test_keys_lead_to_messages_with_the_same_key():
    for key in ApiKey:
        request, response = api.request_class(key), api.response_class(key)
        assert request.api_key == response.api_key == key
        assert request.__name__[:-7] == response.__name__[:-8]
        assert (request.min_version, request.max_version, request.flexible_from) == (
            response.min_version,
            response.max_version,
            response.flexible_from,
        )
        assert isinstance(request.route, Route)
        assert response.route is None


@pytest.mark.parametrize('key', [-1, 4, 52, 999, None, 'Fetch'])
def test_an_unknown_key_is_refused(key):
    for find in (api.request_class, api.response_class):
        with pytest.raises(ProtocolError, match='unknown API key'):
            find(key)


def test_families_are_imported_when_they_are_asked_for():
    program = (
        'import sys; from kafka.protocol import api;'
        'families = {"kafka.protocol." + module for module, _ in api._FAMILIES.values()};'
        'print(sorted(families & set(sys.modules)));'
        'api.request_class(1); print(sorted(families & set(sys.modules)))'
    )
    lines = subprocess.run(
        [sys.executable, '-c', program], stdout=subprocess.PIPE, check=True, timeout=60
    ).stdout.decode()
    assert lines.split('\n')[:2] == ['[]', "['kafka.protocol.fetch']"]


# --- versions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'ranges, highest, version',
    [
        ({1: (0, 2)}, None, 2),  # an old broker
        ({1: (4, 99)}, None, 18),  # a newer one
        ({1: (4, 17)}, 12, 12),  # the caller has a limit
        ({1: (4, 17)}, 4, 4),
        ({1: (0, 0), 3: (0, 5)}, 18, 0),
    ],
)
def test_the_highest_version_that_both_have_is_chosen(ranges, highest, version):
    assert api.choose_version(FetchRequest, ranges, highest) == version


@pytest.mark.parametrize(
    'ranges, highest, words',
    [
        (
            {},
            None,
            'FetchRequest: this client has versions 0 to 18, the broker does not support it',
        ),
        (
            {1: (19, 20)},
            None,
            'FetchRequest: this client has versions 0 to 18, the broker 19 to 20',
        ),
        ({1: (4, 17)}, 3, 'FetchRequest: this client has versions 0 to 3, the broker 4 to 17'),
        (
            {1: (-1, -1)},
            None,
            'FetchRequest: this client has versions 0 to 18, the broker -1 to -1',
        ),
    ],
)
def test_no_common_version_names_the_api_and_both_ranges(ranges, highest, words):
    with pytest.raises(UnsupportedVersionError, match=words):
        api.choose_version(FetchRequest, ranges, highest)


def test_sasl_handshake_is_never_flexible():
    """Its header must stay readable for brokers of every age."""
    assert SaslHandshakeRequest.flexible_from is None
    assert ApiVersionsRequest.flexible_from == 3
