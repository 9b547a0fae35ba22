"""The word lists of the text grammar (words.txt) and English inflection as far as the grammar needs it."""
from pathlib import Path

from inputs import require_file

WORDS_FILE = Path(__file__).resolve().parent / "words.txt"


def _read_tables() -> dict[str, str]:
    """words.txt: one list a line, its name, a tab, then the entries."""
    path = require_file(WORDS_FILE, "it belongs beside word_tables.py")
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


def _regular_forms(verb: str) -> tuple[str, str, str]:
    """Base form, past and -ing form of a regular verb."""
    if verb in ("prefer", "control"):  # the only ones in the list that double their last letter
        return verb, verb + verb[-1] + "ed", verb + verb[-1] + "ing"
    if verb.endswith("e"):
        return verb, verb + "d", verb[:-1] + "ing"
    return verb, verb + "ed", verb + "ing"


def _add_s(noun: str) -> str:
    """The regular plural."""
    if noun.endswith(("s", "sh", "ch", "x", "o")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return noun[:-1] + "ies"
    return noun + "s"


_IRREGULAR_PLURALS = {
    "man": "men",
    "woman": "women",
    "child": "children",
    "person": "people",
    "foot": "feet",
    "mouse": "mice",
    "leaf": "leaves",
    "knife": "knives",
    "sheep": "sheep",
    "fish": "fish",
}


def plural(noun: str) -> str:
    """The plural of a noun of the list."""
    return _IRREGULAR_PLURALS.get(noun) or _add_s(noun)


_TABLES = _read_tables()
NAMES = _TABLES["NAMES"].split()
PLACES = _TABLES["PLACES"].split()
NOUNS = _TABLES["NOUNS"].split()
ADJECTIVES = _TABLES["ADJ"].split()
ADVERBS = _TABLES["ADV"].split()
PREPOSITIONS = _TABLES["PREP"].split()
MONTHS = _TABLES["MONTHS"].split()
DAYS = _TABLES["DAYS"].split()
NUMBER_WORDS = _TABLES["SMALLNUM"].split()
ACRONYMS = _TABLES["ACR"].split()
FUNCTION_WORDS = _TABLES["FUNC"].split()
SET_PHRASES = _TABLES["MISC"].split(" | ")

# (base, past, -ing form). The first three (be, have, do) are left out: the grammar writes them itself.
_IRREGULAR_VERBS = [tuple(forms.split()) for forms in _TABLES["IRREG"].split(" | ")]
VERBS = _IRREGULAR_VERBS[3:] + [_regular_forms(verb) for verb in _TABLES["REG"].split()]
