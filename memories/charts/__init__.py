"""Where the lines, dots and words of the drawings go. All of it is placed here; templates only print it."""

from memories.charts.retention import NARROW, WIDE, Fate, RetentionChart, fates, retention_chart
from memories.charts.timeline import TimelineChart, timeline_chart

__all__ = [
    "NARROW",
    "WIDE",
    "Fate",
    "RetentionChart",
    "TimelineChart",
    "fates",
    "retention_chart",
    "timeline_chart",
]
