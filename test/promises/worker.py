"""A process of one client: reads which promise to try from standard input, answers in JSON."""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import sys
import time
import traceback
from typing import Any, Dict

HERE = os.path.dirname(os.path.abspath(__file__))
HANG_SECONDS = 50.0


def _answer(asked: Dict[str, Any]) -> Dict[str, Any]:
    asking = sys.modules['asking']
    promise = asking.PROMISES[asked['step']]
    at = asking.Asking(asked['cluster']['bootstrap'], asked['cluster']['topic'])
    sys.stderr.write('--- %s\n' % asked['step'])
    faulthandler.dump_traceback_later(HANG_SECONDS)
    began = time.monotonic()
    try:
        answer = asking.plain(promise.run(at))
    except Exception as error:  # whatever it is, the comparison shows it
        traceback.print_exc()
        answer = {'broke': type(error).__name__, **asking.raised(error)}
    finally:
        faulthandler.cancel_dump_traceback_later()
        seconds = time.monotonic() - began
        at.close()
    return {'answer': answer, 'seconds': seconds}


def main() -> None:
    """Answer until standard input ends."""
    sys.path.insert(0, HERE)
    if 'PROMISES_PATH' in os.environ:
        sys.path.insert(0, os.environ['PROMISES_PATH'])
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # what else is printed goes to the log
    logging.basicConfig(level=logging.WARNING)
    for name in sorted(os.listdir(HERE)):
        if name.startswith('on_') and name.endswith('.py'):
            __import__(name[: -len('.py')])
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line))) + '\n')
        answers.flush()
    answers.close()
    os._exit(0)  # a thread of a client that hangs would keep the process


main()
