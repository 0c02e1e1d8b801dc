"""python -m reporter.daily BROKERS TOPIC: send yesterday's numbers."""
from __future__ import absolute_import, print_function

import sys

from reporter.transports import open_transport
from .settings import Settings


def main(argv):
    settings = Settings(*argv)
    transport = open_transport(settings)
    for name, number in [('visits', 120), ('orders', 7), ('refunds', 1)]:
        transport.report(name, number)
    transport.close()
    print('%s by %s, async=%s' % (transport.sent, __name__, settings.async))
    print(sorted(m for m in sys.modules if m.startswith('reporter')))


if __name__ == '__main__':
    main(sys.argv[1:])
