"""The two comparisons of embedded brokers with real ones, alike to those who run and report them.

The script walks versions, well and badly, mostly as somebody who may do everything; the secured one
asks the same as several people with other rights, and logs in in many ways.
"""

from __future__ import annotations

from pathlib import Path
from typing import Callable, List, NamedTuple

from test.differential import recordings, secured_deviations, secured_recordings
from test.differential.deviations import DEVIATIONS, Deviation
from test.differential.runner import Recording, hopeless
from test.differential.script import cases_named


class Comparison(NamedTuple):
    """What is asked, what real brokers said, and what is known to differ.

    ``of_real`` and ``of_embedded`` get a release and parts of the names of what is wanted;
    ``of_embedded`` gets what the real broker said, too, so as not to wait long for nothing.
    """

    folder: Path
    deviations: List[Deviation]
    of_real: Callable[[str, str], Recording]
    of_embedded: Callable[[str, str, Recording], Recording]

    def all_kept(self) -> List[str]:
        """Return the releases of which there are recordings."""
        return recordings.all_kept(self.folder)

    def kept(self, release: str) -> Recording:
        """Return the kept recording of a release. Raises OSError when there is none."""
        return recordings.read(recordings.kept(release, self.folder))


SCRIPT = Comparison(
    recordings.FOLDER,
    DEVIATIONS,
    lambda release, only: recordings.of_real(release, cases_named(only)),
    lambda release, only, real: recordings.of_embedded(release, cases_named(only), hopeless(real)),
)
SECURED = Comparison(
    secured_recordings.FOLDER,
    secured_deviations.DEVIATIONS,
    secured_recordings.of_real,
    lambda release, only, real: secured_recordings.of_embedded(release, only),
)
