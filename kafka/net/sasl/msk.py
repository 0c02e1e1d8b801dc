"""SASL AWS_MSK_IAM: login to Amazon MSK with AWS credentials, by the optional package botocore.

The token is a connect request as JSON, signed by AWS Signature Version 4. The credentials are those
that botocore finds (environment, profile, role).
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
    """A login with AWS credentials; requires TLS."""

    name = 'AWS_MSK_IAM'
    # botocore's errors contain the output of programs and services that it gets credentials from.
    shows_errors = False
    _request: Dict[str, str] = {}

    def prepare(self) -> None:
        """Find the credentials, which may need a request to an AWS service.

        Raises KafkaConfigurationError without TLS or botocore, SaslError without credentials or
        region.
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
        """Send the signed request; the broker responds with the authenticated identity."""
        if not self._request:
            self.prepare()
        self.hint = 'see the keys of AWS and the policy of the cluster (kafka-cluster:Connect)'
        yield json.dumps(self._request, separators=(',', ':')).encode('utf-8')


def signed_request(
    host: str, region: str, access_key: str, secret_key: str, token: Any, now: float
) -> Dict[str, str]:
    """Return the signed connect request.

    Arguments: token: the session token, None for long-lived credentials; now: seconds since the
    epoch.
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
