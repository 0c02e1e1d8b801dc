"""``python -m test.differential --release 2.8.2``: where the embedded broker differs.

A real broker of the release is started and stopped; ``--record`` writes down what it says. With
``--against FILE`` a recording stands for it, with ``--recorded`` the one that is kept here. With
``--secured`` several people ask brokers on which one logs in.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from pathlib import Path
from typing import List, Optional, Sequence

from kafka.testing.releases import broker_release
from test.differential import recordings, report
from test.differential.compare import Difference, compare, explained
from test.differential.comparisons import SCRIPT, SECURED, Comparison
from test.differential.runner import Recording
from test.differential.script import is_wanted


def _arguments(words: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog='python -m test.differential', description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--release', help='such as 2.8.2')
    what.add_argument(
        '--report', action='store_true', help='write docs/differential.rst from the kept recordings'
    )
    parser.add_argument('--secured', action='store_true', help='what people may do, and logins')
    parser.add_argument('--record', type=Path, help='write the real answers there')
    parser.add_argument('--against', type=Path, help='a recording in place of a real broker')
    parser.add_argument('--recorded', action='store_true', help='take the recording kept here')
    parser.add_argument('--only', default='', help='parts of the names of the cases wanted')
    parser.add_argument('--summary', action='store_true', help='only how many, by scenario')
    parser.add_argument('--all', action='store_true', help='show explained differences too')
    parser.add_argument('--ours', type=Path, help='write what the embedded broker says')
    parser.add_argument('--verbose', action='store_true', help='tell how far it is')
    parser.add_argument('--no-compare', action='store_true', help='only record')
    return parser.parse_args(words)


def main(words: Optional[Sequence[str]] = None) -> int:
    """Print the report; return 1 when something is not explained."""
    options = _arguments(words)
    logging.basicConfig(level=logging.DEBUG if options.verbose else logging.WARNING)
    if options.report:
        report.PAGE.write_text(report.page(), encoding='utf-8')
        return 0
    comparison = SECURED if options.secured else SCRIPT
    real = _real(comparison, options)
    if options.no_compare:
        return 0
    began = time.monotonic()
    ours = comparison.of_embedded(options.release, options.only, real)
    seconds = time.monotonic() - began
    if options.ours:
        recordings.write(options.ours, ours)
    real = {name: each for name, each in real.items() if _is_wanted(name, options.only)}
    differences = compare(real, ours)
    version = broker_release(options.release).version
    if not options.all:
        differences = [d for d in differences if not explained(d, version, comparison.deviations)]
    _report(options.release, real, differences, seconds, options.summary)
    return 1 if differences else 0


def _is_wanted(name: str, only: str) -> bool:
    return is_wanted(name.split('/')[0], only)


def _say(line: str) -> None:
    sys.stdout.write(line + '\n')


def _real(comparison: Comparison, options: argparse.Namespace) -> Recording:
    if options.recorded:
        return comparison.kept(options.release)
    if options.against:
        return recordings.read(options.against)
    recording = comparison.of_real(options.release, options.only)
    if options.record:
        if options.only and options.record.exists():
            kept = recordings.read(options.record).items()
            others = {name: each for name, each in kept if not _is_wanted(name, options.only)}
            recording = {**others, **recording}
        recordings.write(options.record, recording)
        _say('%d answers written to %s' % (len(recording), options.record))
    return recording


def _report(
    release: str, real: Recording, differences: List[Difference], seconds: float, is_short: bool
) -> None:
    steps = {difference.where for difference in differences}
    _say(
        '%s: %d requests, %d with unexplained differences (%d fields); embedded in %.1f s'
        % (release, len(real), len(steps), len(differences), seconds)
    )
    if is_short:
        for name, count in Counter(where.split('/')[0] for where in sorted(steps)).items():
            _say('  %4d %s' % (count, name))
        return
    for difference in differences:
        _say('  %s' % (difference,))


if __name__ == '__main__':
    sys.exit(main())
