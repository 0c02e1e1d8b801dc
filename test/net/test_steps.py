"""What stands between a socket and the first request, where the peer breaks off."""

from __future__ import annotations

import pytest

from kafka.net.failures import TlsError
from kafka.net.security import SecuritySettings
from kafka.net.steps import Steps


def test_why_tls_failed_is_told_though_the_alert_cannot_be_sent():
    written = []

    def write(data):
        if written:
            raise BrokenPipeError('it is gone')
        written.append(data)

    security = SecuritySettings.from_options({'security_protocol': 'SSL'})
    taking = Steps(security, 'localhost', 9092, None, write).take('127.0.0.1', False, None)
    next(taking)
    with pytest.raises(TlsError):
        taking.send(b'\x16\x03\x03\x00\x05hello')
