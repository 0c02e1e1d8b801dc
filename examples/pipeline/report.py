"""What the example shows at its end: a table of the rooms, and a plot of their means.

Owns both. They are made of the results topic alone, read back as any other program would.
"""

import json
from datetime import datetime, timedelta
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from kafka.consumer.reader import BoundedReader

WINDOW = timedelta(minutes=5)
COLUMNS = 'room,readings,means,lowest,mean,highest,limit,over the limit,not heard'.split(',')
LINE, BAND, ALARM, QUIET = '#1f5a8a', '#b9d3e6', '#c8321e', '#d9d9d9'
NAN = float('nan')

Span = Tuple[datetime, datetime]


class Mean(NamedTuple):
    """One result: a room in one window."""

    room: str
    start: datetime
    readings: int
    mean: float
    lowest: float
    highest: float
    limit: float
    alarm: bool


def read_back(servers: str, topic: str) -> List[Mean]:
    """Return the results in order, without those of transactions that are open or were given up."""
    found = []
    with BoundedReader(
        topic, bootstrap_servers=servers, isolation_level='read_committed', timeout_ms=20000
    ) as reader:
        for record in reader:
            fields: Dict[str, Any] = json.loads(record.value)
            fields['start'] = datetime.strptime(fields['start'], '%Y-%m-%dT%H:%M:%SZ')
            found.append(Mean(**fields))
    return sorted(found)


def by_room(means: Sequence[Mean]) -> Dict[str, List[Mean]]:
    """Return the results of each room, by its name."""
    found: Dict[str, List[Mean]] = {}
    for each in means:
        found.setdefault(each.room, []).append(each)
    return found


def spans(windows: Sequence[datetime]) -> List[Span]:
    """Return windows that follow each other as one span each."""
    found: List[Span] = []
    for start in windows:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], start + WINDOW)
        else:
            found.append((start, start + WINDOW))
    return found


def silent(own: Sequence[Mean], means: Sequence[Mean]) -> List[Span]:
    """Return when one room was not heard while any other was."""
    return spans(sorted({each.start for each in means} - {each.start for each in own}))


def over(own: Sequence[Mean]) -> List[Span]:
    """Return when one room was too warm."""
    return spans([each.start for each in own if each.alarm])


def table(means: Sequence[Mean]) -> str:
    """Return a line for each room, temperatures in degrees Celsius."""
    lines = [COLUMNS]
    for room, own in by_room(means).items():
        readings = sum(each.readings for each in own)
        mean = sum(each.mean * each.readings for each in own) / readings
        warmth = [min(each.lowest for each in own), mean, max(each.highest for each in own)]
        lines.append(
            [
                room,
                '%d' % readings,
                '%d' % len(own),
                *('%.1f' % each for each in (*warmth, own[0].limit)),
                _clock(over(own)),
                _clock(silent(own, means)),
            ]
        )
    widths = [max(map(len, column)) for column in zip(*lines)]
    return '\n'.join(
        '  '.join(
            cell.rjust(width) if 0 < at < 7 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )


def _clock(found: Sequence[Span]) -> str:
    return ', '.join('%s-%s' % (a.strftime('%H:%M'), b.strftime('%H:%M')) for a, b in found) or '-'


def plot(means: Sequence[Mean], path: str) -> None:
    """Draw a small panel for each room into a file, PNG by its name."""
    # Late: whoever wants no plot needs no matplotlib.
    from matplotlib.dates import AutoDateLocator, DateFormatter
    from matplotlib.figure import Figure

    rooms = by_room(means)
    across = 3
    down = -(-len(rooms) // across)
    figure = Figure(figsize=(7.6, 0.6 + 1.75 * down), dpi=100, layout='constrained')
    panels = figure.subplots(down, across, sharex=True, squeeze=False)
    ends = [each.start for each in means] + [each.start + WINDOW for each in means]
    for panel, (room, own) in zip(panels.flat, rooms.items()):
        _panel(panel, own, silent(own, means))
        panel.set_title(room, fontsize=9, loc='left', fontweight='bold')
        panel.set_xlim(min(ends), max(ends))
        panel.xaxis.set_major_locator(AutoDateLocator(minticks=3, maxticks=6))
        panel.xaxis.set_major_formatter(DateFormatter('%H:%M'))
    for panel in panels.flat[len(rooms) :]:
        panel.set_axis_off()
    figure.supylabel('temperature (°C)', fontsize=9)
    figure.supxlabel('time of the reading (UTC), windows of 5 minutes', fontsize=9)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc='outside upper center', ncols=5, fontsize=8, frameon=False)
    figure.savefig(path)


def _panel(panel: Any, own: Sequence[Mean], gaps: Sequence[Span]) -> None:
    """Draw one room: the mean over the span of its readings, and what is not as it should be."""
    # A window stands at its middle; a gap breaks the line.
    points = {each.start + WINDOW / 2: each for each in own}
    for start, _ in gaps:
        points[start + WINDOW / 2] = own[0]._replace(mean=NAN, lowest=NAN, highest=NAN)
    times = sorted(points)
    drawn = [points[time] for time in times]
    panel.fill_between(
        times,
        [each.lowest for each in drawn],
        [each.highest for each in drawn],
        color=BAND,
        linewidth=0,
        label='lowest to highest',
    )
    panel.plot(times, [each.mean for each in drawn], color=LINE, linewidth=1.3, label='mean')
    panel.axhline(own[0].limit, color=ALARM, linewidth=0.9, linestyle='--', label='limit')
    hot = [each.start + WINDOW / 2 for each in own if each.alarm]
    panel.plot(
        hot,
        [points[time].mean for time in hot],
        color=ALARM,
        linestyle='none',
        marker='o',
        markersize=3.2,
        label='over the limit',
    )
    for start, end in gaps:
        panel.axvspan(start, end, color=QUIET, linewidth=0)
    # In every panel, so that the legend has it: drawn nowhere.
    panel.fill_between([], [], [], color=QUIET, label='not heard')
    panel.tick_params(labelsize=8)
    panel.grid(axis='y', linewidth=0.4, alpha=0.6)
    panel.margins(y=0.15)
    for side in ('top', 'right'):
        panel.spines[side].set_visible(False)
