"""A client that logs in to an embedded broker, in one thread and without sockets."""

from __future__ import annotations

from kafka.net.sasl import authenticate, is_step, mechanism
from kafka.net.security import SecuritySettings
from kafka.protocol.session import NEED_DATA, Role, Session
from kafka.testing.security.sasl.login import Sasl, chosen_mechanisms
from test.testing.drive import Driver

PASSWORDS = {'alice': 'secret', 'bob': 'secret of bob'}


def settings(name, user='alice', password='secret', protocol='SASL_PLAINTEXT', **options):
    """Return what logs in by a mechanism, as options say it."""
    given = {
        'security_protocol': protocol,
        'sasl_mechanism': name,
        'sasl_plain_username': user,
        'sasl_plain_password': password,
        **options,
    }
    return SecuritySettings.from_options(given).sasl


class Link:
    """A connection of a client to a broker with SASL.

    Arguments: version: the broker's release; mechanisms: that it offers; passwords: by user.
    """

    def __init__(self, version='4.4', mechanisms=None, passwords=PASSWORDS, **defaults):
        self.driver = Driver(version, **defaults)
        state = self.driver.state
        state.sasl = Sasl(state, passwords, chosen_mechanisms(state.release, mechanisms))
        self.connect()

    def connect(self):
        """Begin a new connection."""
        self.other = self.driver.client()
        self.session = Session(Role.CLIENT, 'me')

    @property
    def principal(self):
        return self.other.connection.principal

    def write(self, data):
        self.other.connection.receive_data(data)

    def event(self):
        """Return the next event, None once the broker has closed."""
        for _ in range(10):
            written = bytes(self.other.wire.written)
            self.other.wire.written.clear()
            if written:
                self.session.receive_data(written)
            event = self.session.next_event()
            if event is not NEED_DATA:
                return event
            if self.other.connection.is_closed:
                return None
            self.driver.advance(0.1)  # a refusal takes its time
        raise AssertionError('no answer')

    def log_in(self, sasl, others=None):
        """Log in; what comes besides goes to `others`. Returns LoggedIn."""
        means = mechanism(sasl, '127.0.0.1', self.driver.timers.clock.wall_ms() / 1000)
        means.prepare()
        steps = authenticate(self.session, means)
        data = next(steps)
        while True:
            self.write(data)
            event = self.event()
            while event is not None and not is_step(event):
                others.append(event)
                event = self.event()
            try:
                data = steps.send(event)
            except StopIteration as done:
                if done.value.unsent:
                    self.write(done.value.unsent)
                return done.value

    def ask(self, request):
        """Return the answer to a request."""
        self.write(self.session.send(request))
        return self.event().response
