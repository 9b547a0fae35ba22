"""What a shipped voice must keep, judged from the figures of an evaluation."""
from typing import Any, NamedTuple

Summary = dict[str, dict[str, Any]]

JUDGED_MODES = ("greedy", "t0.7")
MAX_WORD_ERRORS = 5.5  # percent
MAX_WORD_ERRORS_ABOVE_CODEC = 1.5
MAX_CODEC_WORD_ERRORS_ABOVE_TEACHER = 2.0
MAX_PHONE_ERRORS_ABOVE_CODEC = 0.5
DURATION = (0.95, 1.05)  # of the teacher's
MAX_CODEC_DISTORTION = {"default speaker": 1.8, "unseen speakers": 2.4}  # dB
MAX_PITCH_ERROR = 5.0  # percent
PITCH_SHARE = 0.9  # of the speakers
MAX_CLONE_DISTORTION_ABOVE_CODEC = 0.5
MIN_SPEED = 30.0  # seconds of speech in one second
NOISE = {"wer": 1.5, "per": 0.5, "mcd": 0.1}  # between two computations of one voice


class Must(NamedTuple):
    """One requirement; kept is None where it was not measured."""

    name: str
    found: str
    kept: bool | None

    def __str__(self) -> str:
        return f"{ {True: 'kept  ', False: 'MISSED', None: '?     '}[self.kept]} {self.name}: {self.found}"


def _at_most(name: str, value: float | None, most: float | None, unit: str = "%") -> Must:
    if value is None or most is None:
        return Must(name, "not measured", None)
    most = round(most, 3)
    return Must(name, f"{value:g} {unit}, at most {most:g}", value <= most)


def _above(figures: dict[str, Any], name: str, margin: float) -> float | None:
    return None if figures.get(name) is None else figures[name] + margin


def _of_mode(mode: str, figures: dict[str, Any], codec: dict[str, Any]) -> list[Must]:
    low, high = DURATION
    ratio, ended = figures["duration_ratio"], figures["ended"]
    most = _above(codec, "wer", MAX_WORD_ERRORS_ABOVE_CODEC)
    phones = _above(codec, "per", MAX_PHONE_ERRORS_ABOVE_CODEC)
    return [
        _at_most(f"{mode}: word errors", figures["wer"], MAX_WORD_ERRORS),
        _at_most(f"{mode}: word errors, the codec's + {MAX_WORD_ERRORS_ABOVE_CODEC:g}", figures["wer"], most),
        _at_most(
            f"{mode}: phone errors, the codec's + {MAX_PHONE_ERRORS_ABOVE_CODEC:g}", figures["per"], phones
        ),
        Must(f"{mode}: every sentence ends", f"{ended:g} %", ended == 100),
        Must(f"{mode}: duration / teacher's, {low:g} to {high:g}", f"{ratio:g}", low <= ratio <= high),
    ]


def _of_cloning(figures: dict[str, Any]) -> list[Must]:
    count = figures["speakers"]
    near, close, own = figures["pitch_within"], figures["close_to_codec"], figures["nearer_than_default"]
    unseen = "unseen speakers"
    return [
        _at_most(f"codec: distortion, {unseen}", figures["mcd_codec"], MAX_CODEC_DISTORTION[unseen], "dB"),
        Must(
            f"cloning: pitch within {MAX_PITCH_ERROR:g} % of the reference's",
            f"{near} of {count}",
            near >= PITCH_SHARE * count,
        ),
        Must(
            f"cloning: distortion, the codec's + {MAX_CLONE_DISTORTION_ABOVE_CODEC:g} dB",
            f"{close} of {count}",
            close == count,
        ),
        Must("cloning: nearer to the speaker than to the default", f"{own} of {count}", own == count),
    ]


def _against(summary: Summary, other: Summary) -> list[Must]:
    musts = []
    for mode in JUDGED_MODES:
        for name, noise in NOISE.items():
            mine, others = (figures.get(mode, {}).get(name) for figures in (summary, other))
            if mine is not None and others is not None:
                musts.append(
                    Must(
                        f"{mode}: {name} as in the other evaluation, within {noise:g}",
                        f"{mine:g}, {others:g}",
                        abs(mine - others) <= noise,
                    )
                )
    return musts


def judge(summary: Summary, other: Summary | None = None) -> list[Must]:
    """All requirements; other: the summary of another computation of the same voice."""
    codec, default = summary["codec"], "default speaker"
    most = _above(summary["teacher"], "wer", MAX_CODEC_WORD_ERRORS_ABOVE_TEACHER)
    musts = [
        _at_most(
            f"codec: word errors, the teacher's + {MAX_CODEC_WORD_ERRORS_ABOVE_TEACHER:g}", codec["wer"], most
        ),
        _at_most(f"codec: distortion, {default}", codec["mcd"], MAX_CODEC_DISTORTION[default], "dB"),
    ]
    for mode in JUDGED_MODES:
        if mode in summary:
            musts += _of_mode(mode, summary[mode], codec)
    if "cloning" in summary:
        musts += _of_cloning(summary["cloning"])
    speeds = [figures["speed"] for figures in summary.values() if figures.get("speed")]
    if speeds:
        fastest = max(speeds)
        musts.append(Must(f"speed, at least {MIN_SPEED:g}x real time", f"{fastest:g}x", fastest >= MIN_SPEED))
    return musts + (_against(summary, other) if other else [])
