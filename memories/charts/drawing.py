"""What every drawing is made of: an area, ticks, words that do not lie upon each other."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

LINE = 13  # the height of a line of words, in the units of the drawing, as are all lengths here
LETTER = 6.5  # about the width of a letter


@dataclass(frozen=True)
class Frame:
    """A drawing, and the area inside it that the curves have."""

    width: int
    height: int
    left: int = 34
    margin_right: int = 24
    top: int = 30
    margin_bottom: int = 26

    @property
    def right(self) -> int:
        return self.width - self.margin_right

    @property
    def bottom(self) -> int:
        return self.height - self.margin_bottom

    def x(self, share: float) -> float:
        return round(self.left + min(max(share, 0), 1) * (self.right - self.left), 1)

    def y(self, share: float) -> float:
        return round(self.bottom - min(max(share, 0), 1) * (self.bottom - self.top), 1)


@dataclass(frozen=True)
class Dot:
    x: float
    y: float


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Label:
    x: float
    y: float  # of the line the letters stand on
    text: str
    anchor: str = "start"
    leader: str = ""  # a thin line back to what the label names, when it had to move away

    @property
    def width(self) -> float:
        return LETTER * len(self.text) + 3


def points(dots: Iterable[Dot]) -> str:
    return " ".join(f"{dot.x},{dot.y}" for dot in dots)


def readable(ticks: Iterable[Tick]) -> list[Tick]:
    """Keep the ticks whose words do not run into those of the one before."""
    kept: list[Tick] = []
    for tick in ticks:
        room = LETTER * (2 + len(tick.text) + len(kept[-1].text)) / 2 if kept else 0
        if not kept or tick.at - kept[-1].at > room:
            kept.append(tick)
    return kept


def apart(anchors: list[tuple[Dot, str]], frame: Frame, *, taken: list[Label]) -> list[Label]:
    """Put each text near its anchor, none of them upon another or upon what is taken.

    The lowest are placed first and the others above them, so that a pile of words is in order.
    """
    placed: dict[int, Label] = {}
    for index in sorted(range(len(anchors)), key=lambda index: -anchors[index][0].y):
        near = list(_places(*anchors[index], frame))
        free = (label for label in near if not _collides(label, [*taken, *placed.values()]))
        placed[index] = next(free, near[0])
    return [placed[index] for index in range(len(anchors))]


def _places(anchor: Dot, text: str, frame: Frame) -> Iterable[Label]:
    """Beside the anchor, then further and further above it, then below it."""
    highest, lowest = frame.top + LINE - 4, frame.bottom - 2
    beside = min(max(anchor.y - 4, highest), lowest)
    steps = range(2 * frame.height // LINE)
    for step in [*(-step for step in steps), *steps]:
        if highest <= (y := beside + step * LINE / 2) <= lowest:
            yield _label(anchor, text, y, moved=abs(step) > 2)


def _label(anchor: Dot, text: str, y: float, *, moved: bool) -> Label:
    label = Label(round(anchor.x + 4, 1), round(y, 1), text)
    return replace(label, leader=points([anchor, Dot(label.x - 1, label.y - 4)])) if moved else label


def _collides(label: Label, others: list[Label]) -> bool:
    return any(
        abs(label.y - other.y) < LINE and label.x < other.x + other.width and other.x < label.x + label.width
        for other in others
    )
