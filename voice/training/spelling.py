"""Numbers as words, as far as the text grammar writes them, in the words of the engine's own normaliser.

The engine speaks numbers as words before the model sees them, so the model learns from words alone.
check_spelling.py compares this with `shoal normalize`.
"""
import re

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
).split()
_TENS = "? ? twenty thirty forty fifty sixty seventy eighty ninety".split()
_IRREGULAR_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_TITLES = {"Mr.": "Mister", "Mrs.": "Missus", "Dr.": "Doctor"}
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"


def cardinal(number: int) -> str:
    """0 to 999,999: "four thousand eight hundred twenty-seven"."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    size, name = (100, "hundred") if number < 1000 else (1000, "thousand")
    rest = f" {cardinal(number % size)}" if number % size else ""
    return f"{cardinal(number // size)} {name}{rest}"


def ordinal(number: int) -> str:
    """1 to 999,999: "twenty-first"."""
    head, separator, last = re.fullmatch(r"(.*?)([ -]?)(\w+)", cardinal(number)).groups()
    if last in _IRREGULAR_ORDINALS:
        return head + separator + _IRREGULAR_ORDINALS[last]
    return head + separator + (last[:-1] + "ieth" if last.endswith("y") else last + "th")


def _two_digits(number: int) -> str:
    """Of a year or of minutes: 5 is "oh five"."""
    return f"oh {_ONES[number]}" if number < 10 else cardinal(number)


def year(number: int) -> str:
    """1600 to 2099 in pairs where people say them so."""
    if number % 1000 < 10:
        return cardinal(number)
    if number % 100 == 0:
        return f"{cardinal(number // 100)} hundred"
    return f"{cardinal(number // 100)} {_two_digits(number % 100)}"


def _bare(digits: str) -> str:
    number = int(digits)
    return year(number) if 1600 <= number < 2100 else cardinal(number)


def _digits(digits: str) -> str:
    return " ".join(_ONES[int(digit)] for digit in digits)


def _units(number: int, name: str) -> str:
    return f"{cardinal(number)} {name}{'' if number == 1 else 's'}"


def _time(match: re.Match) -> str:
    hour, minutes, half = match.groups()
    said = cardinal(int(hour))
    if int(minutes):
        said += f" {_two_digits(int(minutes))}"
    elif not half:
        said += " o'clock"
    return said + (f" {half[1].upper()}M" if half else "")


def _money(match: re.Match) -> str:
    dollars, cents = match.groups()
    said = _units(int(dollars), "dollar")
    return said + (f" and {_units(int(cents), 'cent')}" if cents and int(cents) else "")


def _decimal(match: re.Match) -> str:
    return f"{cardinal(int(match[1]))} point {_digits(match[2])}"


_HALF_DAY = r"( [ap]\.m\.)"
# In order: the earlier ones take what the later ones would misread.
_RULES = (
    (rf"(?i)\b(\d+):(\d\d){_HALF_DAY}?", _time),
    (rf"(?i)\b(\d+){_HALF_DAY}", lambda m: f"{cardinal(int(m[1]))} {m[2][1].upper()}M"),
    (rf"\b((?:{_MONTHS}) )(\d+)(?:th)?\b", lambda m: m[1] + ordinal(int(m[2]))),
    (r"\$(\d+)(?:\.(\d\d))?", _money),
    (r"\b(\d{3})-(\d{4})\b", lambda m: f"{_digits(m[1])}, {_digits(m[2])}"),
    (r"(?<![\w-])-(?=\d)", "minus "),
    (r"\b(\d+)(?:st|nd|rd|th)\b", lambda m: ordinal(int(m[1]))),
    (r"\b(\d+)%", lambda m: f"{cardinal(int(m[1]))} percent"),
    (r"\b(\d+),(\d{3})\b", lambda m: cardinal(int(m[1] + m[2]))),
    (r"\b(\d+)\.(\d+)", _decimal),
    (r"\d+", lambda m: _bare(m[0])),
    (r"\b(?:Mrs?|Dr)\.(?= )", lambda m: _TITLES[m[0]]),
)


def spelled(text: str) -> str:
    """A text of the grammar with its numbers as words."""
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    return text
