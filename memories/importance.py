"""The ten levels of importance, in numbers and in words."""

MIN_IMPORTANCE, MAX_IMPORTANCE, DEFAULT_IMPORTANCE = 1, 10, 5

VERBAL_SCALE: dict[int, str] = {
    1: "Trivia: nobody would miss it tomorrow.",
    2: "Passing detail: useful for the task at hand only.",
    3: "Small detail: may help once more within days.",
    4: "Minor preference or circumstance.",
    5: "Ordinary fact: worth knowing for some weeks.",
    6: "Useful fact: comes up again and again.",
    7: "Important preference, decision or constraint.",
    8: "Very important: forgetting it causes rework.",
    9: "Critical: forgetting it causes harm or loss.",
    10: "Vital: defines the person or the project.",
}
