"""Word and phone errors of one evaluation beside another's, sentence by sentence.

  paired.py BASE/evaluation.json OTHER/evaluation.json ...

Prints, for each other evaluation, the percentages of all ways of speaking together, their difference in points,
and between which 95 of 100 differences lie when sentences are drawn anew (bootstrap, Efron 1979).
"""
import json
import random
import sys
from pathlib import Path

import training_path  # noqa: F401
from inputs import InputError, require_file, run_tool
from musts import JUDGED_MODES

DRAWS = 4000
KINDS = (("words", "word_errors"), ("phones", "phone_errors"))

Counts = list[tuple[int, int]]  # errors and how many there were, of each sentence


def counts_of(evaluation: dict, total: str, errors: str) -> Counts:
    """Of each sentence, all ways of speaking together; none where nobody listened."""
    modes = [evaluation["details"].get(mode, []) for mode in JUDGED_MODES]
    counts = []
    for spoken in zip(*modes):
        counts.append((sum(d.get(errors, 0) for d in spoken), sum(d.get(total, 0) for d in spoken)))
    return counts if any(of for _, of in counts) else []


def _percent(counts: Counts) -> float:
    return 100 * sum(wrong for wrong, _ in counts) / sum(of for _, of in counts)


def difference(base: Counts, other: Counts) -> tuple[float, float, float]:
    """In points: the difference, and the bounds of 95 % of the draws."""
    if [of for _, of in base] != [of for _, of in other]:
        raise InputError("the evaluations are of different sentences")
    rng, drawn = random.Random(1), []
    for _ in range(DRAWS):
        chosen = rng.choices(range(len(base)), k=len(base))
        drawn.append(_percent([other[i] for i in chosen]) - _percent([base[i] for i in chosen]))
    drawn.sort()
    return _percent(other) - _percent(base), drawn[DRAWS // 40], drawn[-DRAWS // 40]


def main() -> None:
    if len(sys.argv) < 3:
        raise InputError("expected the evaluation.json of a base and of what is compared with it")
    paths = [require_file(path, "evaluate.py writes it") for path in sys.argv[1:]]
    base, *others = [json.loads(path.read_text()) for path in paths]
    for path, other in zip(paths[1:], others):
        for total, errors in KINDS:
            mine, theirs = counts_of(base, total, errors), counts_of(other, total, errors)
            if mine and theirs:
                points, low, high = difference(mine, theirs)
                print(f"{Path(path).parent.name}: {total} {_percent(theirs):.2f} % wrong, base {_percent(mine):.2f} %: "
                      f"{points:+.2f} points, 95 %: {low:+.2f} to {high:+.2f}")


if __name__ == "__main__":
    run_tool(main)
