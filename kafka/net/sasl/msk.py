"""AWS_MSK_IAM: logging in to Amazon MSK with the keys of AWS, by the optional package botocore.

The token is a request to connect, signed by Signature Version 4, as JSON. The keys are those that
botocore finds (environment, profile, role).
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import json
from typing import Any, Dict
from urllib.parse import quote

from kafka.errors import InvalidOptionError
from kafka.internals.lazy_imports import import_late
from kafka.net.failures import SaslError
from kafka.net.sasl.mechanism import Exchange, Mechanism
from kafka.version import __version__

__all__ = ['AwsMskIam', 'signed_request']

_SERVICE = 'kafka-cluster'
_VALID_SECONDS = 900


class AwsMskIam(Mechanism):
    """A login with the keys of AWS; over TLS alone."""

    name = 'AWS_MSK_IAM'
    shows_errors = False  # botocore shows what the programs and services say that it asks for keys
    _request: Dict[str, str] = {}

    def prepare(self) -> None:
        """Find the keys, which may ask a service of AWS.

        Raises KafkaConfigurationError without TLS or botocore, SaslError without keys.
        """
        if not self.settings.is_encrypted:
            raise InvalidOptionError('AWS_MSK_IAM needs security_protocol=SASL_SSL')
        try:
            package = import_late('botocore.session')
        except ImportError as error:
            raise InvalidOptionError(
                'sasl_mechanism=AWS_MSK_IAM needs the package botocore:'
                ' pip install kafka-evergreen[msk]'
            ) from error
        session = package.Session()
        credentials, region = session.get_credentials(), session.get_config_variable('region')
        if credentials is None or region is None:
            raise SaslError('botocore finds no %s of AWS' % ('keys' if region else 'region'))
        keys = credentials.get_frozen_credentials()
        self._request = signed_request(
            self.host, region, keys.access_key, keys.secret_key, keys.token, self.now
        )

    def exchange(self) -> Exchange:
        """Send the signed request; the broker answers who it takes us for."""
        if not self._request:
            self.prepare()
        self.hint = 'see the keys of AWS and the policy of the cluster (kafka-cluster:Connect)'
        yield json.dumps(self._request, separators=(',', ':')).encode('utf-8')


def signed_request(
    host: str, region: str, access_key: str, secret_key: str, token: Any, now: float
) -> Dict[str, str]:
    """Return the request to connect, signed.

    Arguments: token: of a session, None for long-lived keys; now: seconds since the epoch.
    """
    moment = datetime.datetime.fromtimestamp(now, datetime.timezone.utc)
    stamp, day = moment.strftime('%Y%m%dT%H%M%SZ'), moment.strftime('%Y%m%d')
    scope = '%s/%s/%s/aws4_request' % (day, region, _SERVICE)
    query = {
        'Action': 'kafka-cluster:Connect',
        'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
        'X-Amz-Credential': '%s/%s' % (access_key, scope),
        'X-Amz-Date': stamp,
        'X-Amz-Expires': str(_VALID_SECONDS),
        'X-Amz-SignedHeaders': 'host',
    }
    if token:
        query['X-Amz-Security-Token'] = token
    pairs = [
        '%s=%s' % (quote(key, safe='-_.~'), quote(value, safe='-_.~'))
        for key, value in sorted(query.items())
    ]
    nothing = hashlib.sha256(b'').hexdigest()
    canonical = 'GET\n/\n%s\nhost:%s\n\nhost\n%s' % ('&'.join(pairs), host, nothing)
    digest = hashlib.sha256(canonical.encode('utf-8')).hexdigest()
    to_sign = 'AWS4-HMAC-SHA256\n%s\n%s\n%s' % (stamp, scope, digest)
    key = ('AWS4' + secret_key).encode('utf-8')
    for part in (day, region, _SERVICE, 'aws4_request'):
        key = hmac.new(key, part.encode('utf-8'), 'sha256').digest()
    signature = hmac.new(key, to_sign.encode('utf-8'), 'sha256').hexdigest()
    request = {name.lower(): value for name, value in query.items()}
    return {
        'version': '2020_10_22',
        'host': host,
        'user-agent': 'kafka-evergreen/' + __version__,
        **request,
        'x-amz-signature': signature,
    }
