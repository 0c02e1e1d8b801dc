"""An identity provider for tests: a web server of this machine behind TLS that makes out tokens."""

from __future__ import annotations

import http.server
import json
import threading

from kafka.net.sasl.oidc import ClientCredentials
from kafka.testing.security.certificates import local_tls

SECRET = 'Canary/of a secret'


class Provider:
    """An identity provider. Arguments: answer: (status, headers, body) or a function of a handler.

    Attributes: asked: headers and bodies of the requests.
    """

    def __init__(self, answer):
        self.asked = []
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers['Content-Length']))
                provider.asked.append((dict(self.headers), body))
                if callable(answer):
                    answer(self)
                    return
                status, headers, data = answer
                self.send_response(status)
                for item in headers.items():
                    self.send_header(*item)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.socket = local_tls().context().wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def client(self, **options):
        url = 'https://127.0.0.1:%d/token' % self.server.server_address[1]
        options.setdefault('cafile', local_tls().certificate)
        return ClientCredentials(url, 'me:you', SECRET, **options)


def token(**fields):
    return 200, {'Content-Type': 'application/json'}, json.dumps(fields).encode()
