"""Synthetic English text: a small phrase grammar over common words, and word lists that cover spellings."""
import random
from collections.abc import Sequence
from pathlib import Path

from inputs import require_file
from spelling import spelled
from word_tables import (
    ACRONYMS,
    ADJECTIVES,
    ADVERBS,
    DAYS,
    FUNCTION_WORDS,
    MONTHS,
    NAMES,
    NOUNS,
    NUMBER_WORDS,
    PLACES,
    PREPOSITIONS,
    SET_PHRASES,
    VERBS,
    plural,
)

HELD_OUT_FILE = Path(__file__).resolve().parent / "test_sentences.txt"
EVERYDAY_FILE = HELD_OUT_FILE.with_name("everyday_sentences.txt")

# Repeated entries are weights.
PRONOUN_OBJECTS = "him her them it us me you everyone someone something nothing".split()
QUANTIFIERS = ["some", "many", "these", "those", "all the", "most", "the", "two", "three", "our", "several"]
DETERMINERS = ["the"] * 6 + ["a"] * 5 + "my your his her our their this that every another".split()
VERB_FORMS = ["past", "past", "past", "modal", "negative", "progressive", "perfect", "infinitive"]
TIME_UNITS = ["days", "hours", "weeks", "minutes", "years"]
HOURS = "one two three four five six seven eight nine ten eleven twelve".split()
BE_PHRASES = ["it is", "it was", "this is", "that was", "there is", "there was", "here is", "it's", "that's"]
COPULAS = ["is", "was", "seems", "looked", "became", "will be", "has been", "is not", "feels"]
CONNECTIVES = [", and ", ", but ", " because ", " when ", ", so ", " while ", "; "]
CONNECTIVES += [" before ", " if ", " until ", ": "]
IMPERATIVE_OPENINGS = ["", "please ", "don't "]
OPENINGS = ["however", "then", "of course", "in fact", "well", "first", "finally", "for example"]
ENDINGS = ["."] * 12 + ["!", "!", "..."]


def capitalised(text: str) -> str:
    """The text with its first letter in upper case."""
    return text[0].upper() + text[1:]


class TextGenerator:
    """Draws training texts; one seed gives one sequence of texts.

    Where a phrase is chosen among alternatives, all of them are built first, each with its own draws, and one
    is kept. So the texts of a seed depend on the number and the order of all draws: reordering them changes
    the corpus.
    """

    def __init__(self, seed: int, common_words: Sequence[str], all_words: Sequence[str], spell: bool = True):
        """spell: numbers as words, as the engine gives them to the model."""
        self._random = random.Random(seed)
        self._spell = spelled if spell else str
        self._common_words = common_words
        self._all_words = all_words
        verb_forms = [form for verb in VERBS for form in verb]
        vocabulary = NOUNS + ADJECTIVES + ADVERBS + PREPOSITIONS + verb_forms + NUMBER_WORDS + FUNCTION_WORDS
        self._grammar_words = sorted(set(vocabulary))

    def utterance(self, max_chars: int = 130) -> str:
        """One training text; most take 1 to 8 s when spoken at a normal rate."""
        while True:
            text = self._any_text()
            if self._chance(0.05):
                text = text.lower().rstrip(".!?")
            if self._chance(0.02):
                text = text.replace("'", "\u2019")
            text = self._spell(text)
            if len(text) <= max_chars:
                return text

    def long_utterance(self, min_chars: int = 110, max_chars: int = 230) -> str:
        """Several sentences in a row."""
        while True:
            text = self.sentence()
            while len(text) < min_chars:
                more = (
                    self.sentence() if self._chance(0.8) else capitalised(self.words(self._int(3, 8))) + "."
                )
                text += " " + more
            text = self._spell(text)
            if len(text) <= max_chars:
                return text

    def words(self, count: int) -> str:
        """Unrelated words, for the coverage of spellings; about one in twelve is followed by a comma."""
        drawn = []
        for _ in range(count):
            source = self._random.random()
            if source < 0.3:
                word = self._one_of(self._grammar_words)
            elif source < 0.65:
                word = self._one_of(self._common_words)
            else:
                word = self._one_of(self._all_words)
            drawn.append(word + ("," if self._chance(0.08) else ""))
        return " ".join(drawn).rstrip(",")

    def sentence(self) -> str:
        """A sentence with its end mark. The thresholds are cumulative shares of the kinds of sentence."""
        kind = self._random.random()
        if kind < 0.40:
            text = self._clause()
        elif kind < 0.52:
            text = f"{self._clause()}{self._one_of(CONNECTIVES)}{self._clause()}"
        elif kind < 0.60:
            return capitalised(self._question())
        elif kind < 0.65:
            text = f"{self._one_of(IMPERATIVE_OPENINGS)}{self._verb_phrase('base')}"
        elif kind < 0.70:
            conjunction = self._one_of(["when", "if", "after", "because", "although", "as", "before"])
            text = f"{conjunction} {self._clause()}, {self._clause()}"
        elif kind < 0.73:
            quoted = capitalised(self._clause())
            return f'"{quoted}," {self._one_of(["said", "asked", "answered"])} {self._one_of(NAMES)}.'
        elif kind < 0.78:
            opening = self._time_phrase() if self._chance(0.5) else self._one_of(OPENINGS)
            text = f"{opening}, {self._clause()}"
        elif kind < 0.93:
            return self._fact()
        else:
            return self._one_of(SET_PHRASES)
        return capitalised(text) + self._one_of(ENDINGS)

    def _any_text(self) -> str:
        """Sentences and bare words. The thresholds are cumulative shares."""
        kind = self._random.random()
        if kind < 0.40:
            return self.sentence()
        if kind < 0.74:
            text = self.words(self._int(2, 12))
            return capitalised(text) + self._one_of([".", ".", "?", "!"]) if self._chance(0.7) else text
        if kind < 0.82:
            return self.words(1) if self._chance(0.6) else self.words(2)
        return self.sentence() + " " + self.sentence()

    def _one_of(self, alternatives: Sequence[str]):
        return self._random.choice(alternatives)

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _int(self, low: int, high: int) -> int:
        """A whole number, both limits included."""
        return self._random.randint(low, high)

    def _noun(self) -> str:
        return self._one_of(NOUNS)

    def _noun_phrase(self, plain: bool = False) -> str:
        """plain: no object pronoun, so that the phrase can be a subject or follow a preposition."""
        kind = self._random.random()
        if kind < 0.12:
            return self._one_of(NAMES)
        if kind < 0.2 and not plain:
            return self._one_of(PRONOUN_OBJECTS)
        adjective = self._one_of(ADJECTIVES) + " " if self._chance(0.5) else ""
        if kind < 0.32:
            return f"{self._one_of(QUANTIFIERS)} {adjective}{plural(self._noun())}"
        noun = adjective + self._noun()
        determiner = self._one_of(DETERMINERS)
        if determiner == "a" and noun[0] in "aeiou":
            determiner = "an"
        phrase = f"{determiner} {noun}"
        if self._chance(0.15):
            phrase += f" {self._one_of(['of', 'in', 'from', 'with', 'near'])} the {self._noun()}"
        return phrase

    def _subject(self) -> str:
        return (
            self._one_of("he she it I you we they".split()) if self._chance(0.5) else self._noun_phrase(True)
        )

    def _prepositional_phrase(self) -> str:
        return f"{self._one_of(PREPOSITIONS)} {self._noun_phrase(True)}"

    def _time_phrase(self) -> str:
        return self._one_of(
            [
                f"on {self._one_of(DAYS)}",
                f"in {self._one_of(MONTHS)}",
                "last week",
                "next year",
                "every day",
                "in the morning",
                "at night",
                "this afternoon",
                "a long time ago",
                "right now",
                f"at {self._clock_time()}",
                f"for {self._one_of(NUMBER_WORDS)} {self._one_of(TIME_UNITS)}",
                "tonight",
                "after that",
            ]
        )

    def _clock_time(self) -> str:
        return self._one_of(
            [
                f"{self._int(1, 12)}:{self._int(0, 59):02d}",
                f"{self._one_of(HOURS)} o'clock",
                f"{self._int(1, 12)} a.m.",
                f"{self._int(1, 12)}:{self._one_of(['00', '15', '30', '45'])} p.m.",
                "noon",
                "midnight",
            ]
        )

    def _number(self) -> str:
        kind = self._int(0, 9)
        return [
            str(self._int(0, 20)),
            str(self._int(0, 100)),
            str(self._int(100, 999)),
            str(self._int(1000, 9999)),
            f"{self._int(0, 99)}.{self._int(0, 99)}",
            f"{self._int(1, 100)}%",
            f"${self._int(1, 500)}",
            f"{self._int(1900, 2035)}",
            f"{self._int(1, 999)},{self._int(0, 999):03d}",
            f"{self._one_of(NUMBER_WORDS)} hundred",
        ][kind]

    def _verb(self, form: str | None) -> str:
        base, past, ing = self._one_of(VERBS)
        form = form or self._one_of(VERB_FORMS)
        modal = self._one_of("will would can could should might must may".split())
        did_not = "didn\u2019t" if self._chance(0.1) else "didn't"
        negation = self._one_of(["did not", did_not, "could not", "cannot", "would never", "won't", "can't"])
        leading = self._one_of(["wanted", "tried", "had", "used", "decided", "began", "needed"])
        return {
            "base": base,
            "past": past,
            "ing": ing,
            "modal": f"{modal} {base}",
            "negative": f"{negation} {base}",
            "progressive": f"was {ing}",
            "perfect": f"had {past}",
            "infinitive": f"{leading} to {base}",
        }[form]

    def _verb_phrase(self, form: str | None = None) -> str:
        """A verb in a form (base, past, ing; none: any tense), perhaps with an object and adverbials."""
        phrase = self._verb(form)
        if self._chance(0.7):
            phrase += " " + self._noun_phrase()
        if self._chance(0.35):
            phrase += " " + self._prepositional_phrase()
        if self._chance(0.2):
            phrase += " " + self._one_of(ADVERBS)
        if self._chance(0.2):
            phrase += " " + self._time_phrase()
        return phrase

    def _clause(self) -> str:
        kind = self._int(0, 11)
        if kind < 6:
            return f"{self._subject()} {self._verb_phrase()}"
        if kind == 6:
            return f"{self._one_of(BE_PHRASES)} {self._noun_phrase(True)}"
        if kind == 7:
            subject, copula = self._noun_phrase(True), self._one_of(COPULAS)
            degree = self._one_of(["", "very ", "too ", "quite ", "so "])
            return f"{subject} {copula} {degree}{self._one_of(ADJECTIVES)}"
        if kind == 8:
            verb = self._one_of(["think", "believe", "know", "hope", "said", "heard", "guess"])
            return f"I {verb} {self._one_of(['', 'that '])}{self._subject()} {self._verb_phrase()}"
        if kind == 9:
            subject = self._one_of(["you're", "we're", "I'm", "they're", "he's", "she is", "they are"])
            return f"{subject} {self._verb_phrase('ing')}"
        if kind == 10:
            return f"{self._noun_phrase(True)} and {self._noun_phrase(True)} {self._verb_phrase('past')}"
        there = f"there {self._one_of(['are', 'were', 'will be'])} {self._number()}"
        return f"{there} {plural(self._noun())} {self._prepositional_phrase()}"

    def _question(self) -> str:
        one_of = self._one_of
        verb_phrase = self._verb_phrase("base")
        alternatives = [
            f"{one_of('do did can could would will should'.split())} {self._subject()} {verb_phrase}",
            f"{one_of('why how when where'.split())} {one_of('do did can would should'.split())}"
            f" {one_of('you we they I he she'.split())} {verb_phrase}",
            f"what {one_of(['is', 'was', 'about', 'happened to'])} {self._noun_phrase(True)}",
            f"who {self._verb_phrase('past')}",
            f"is {self._noun_phrase(True)} {one_of(ADJECTIVES)}",
            f"have you ever {self._verb_phrase('past')}",
            f"how {one_of(['many', 'few'])} {plural(self._noun())}"
            f" {one_of(['are there', 'do you have', 'did they find'])}",
            f"which {self._noun()} {one_of(['do you want', 'is yours', 'was better'])}",
        ]
        return one_of(alternatives) + "?"

    def _price(self) -> str:
        dollars_and_cents = f"${self._int(1, 90)}.{self._int(1, 99):02d}"
        return self._one_of([dollars_and_cents, self._number(), f"${self._int(1, 2000)}"])

    def _fact(self) -> str:
        """A sentence with numbers, dates, prices, names or places."""
        return self._one_of(
            self._everyday_facts() + self._counting_facts() + self._people_facts() + self._quantity_facts()
        )

    def _everyday_facts(self) -> list[str]:
        one_of, integer = self._one_of, self._int
        return [
            f"The {self._noun()} costs {self._price()}.",
            f"The train leaves at {self._clock_time()} from platform {integer(1, 20)}.",
            f"The temperature is {integer(-20, 110)} degrees.",
            f"It will be {one_of('sunny cloudy rainy windy snowy foggy warm cold'.split())}"
            f" {one_of(['today', 'tomorrow', 'tonight', 'on ' + one_of(DAYS)])},"
            f" with a high of {one_of([str(integer(20, 100)), one_of(NUMBER_WORDS)])}.",
        ]

    def _counting_facts(self) -> list[str]:
        one_of, integer, number = self._one_of, self._int, self._number
        return [
            f"{one_of(NAMES)} was born on {one_of(MONTHS)} {integer(1, 31)}, {integer(1800, 2020)}.",
            f"My number is {' '.join(str(integer(0, 9)) for _ in range(integer(3, 8)))}.",
            f"Please call {integer(200, 999)}-{integer(1000, 9999)}.",
            f"{number()} plus {number()} is {number()}.",
            f"Chapter {integer(1, 40)}.",
            f"{one_of(PLACES)} is {number()} miles from {one_of(PLACES)}.",
        ]

    def _people_facts(self) -> list[str]:
        one_of, integer = self._one_of, self._int
        return [
            f"{one_of(['Mr.', 'Mrs.', 'Dr.', 'Miss', 'Professor', 'Captain'])} {one_of(NAMES)}"
            f" {self._verb_phrase('past')}.",
            f"He came in {integer(1, 31)}{one_of(['th', 'th', 'st', 'nd', 'rd'])} place.",
            f"We flew from {one_of(PLACES)} to {one_of(PLACES)} {self._time_phrase()}.",
            f"The {one_of(ACRONYMS)} {self._verb_phrase('past')}.",
            f"{one_of(DAYS)}, {one_of(MONTHS)} {integer(1, 31)}{one_of(['', 'th'])}.",
        ]

    def _quantity_facts(self) -> list[str]:
        one_of, integer, number = self._one_of, self._int, self._number
        return [
            f"{number()}.",
            f"{number()}, {number()}, {number()}.",
            f"About {number()} {plural(self._noun())} were {one_of('found lost sold made'.split())}"
            f" in {integer(1700, 2030)}.",
            f"{one_of(['The', 'Your', 'My', 'Our'])}"
            f" {one_of('order room flight page account invoice house ticket code phone'.split())}"
            f"{one_of(['', ' number'])} is {one_of([number(), str(integer(100, 99999))])}.",
            f"{one_of(['About', 'Nearly', 'Only', 'At least'])} {integer(1, 100)}%"
            f" of {one_of(['the', 'all', 'these'])} {plural(self._noun())} {self._verb_phrase('past')}.",
            f"It {one_of('rose fell grew changed moved'.split())} from {number()} to {number()}"
            f" {self._time_phrase()}.",
            f"Version {integer(0, 12)}.{integer(0, 20)} is ready.",
            f"Turn {one_of(['left', 'right'])} in {integer(1, 900)}"
            f" {one_of(['feet', 'meters', 'yards', 'miles'])}.",
        ]


def load_words(path: Path | str) -> list[str]:
    """The words of a word list, one a line, without single letters other than "a" and "I"."""
    path = require_file(
        path, "install the word lists (Debian: wamerican and wamerican-small) or name another file"
    )
    return [word for word in path.read_text(encoding="utf-8").split() if len(word) > 1 or word in "aI"]


def held_out_sentences(path: Path = HELD_OUT_FILE) -> list[str]:
    """Sentences that measure a voice; no training text is drawn from them."""
    path = require_file(path, "it belongs beside text.py")
    return path.read_text(encoding="utf-8").strip().split("\n")
