"""The weighted mean of the weights of several stretches of one training, tensor by tensor, as bf16.

Weights on both sides of a valley have their mean nearer to its ground: the mean of a model and of its
continuation on fresh speech can be better than either (Izmailov et al. 2018, averaging weights).
"""
import argparse
from pathlib import Path

import torch

from checkpoints import Weights, load_safetensors, save_safetensors
from inputs import InputError, run_tool


def _parse(argument: str) -> tuple[Path, float]:
    path, _, weight = argument.rpartition(":")
    try:
        return Path(path), float(weight)
    except ValueError:
        reason = f"{argument}: expected FILE:WEIGHT, as in model.safetensors:0.5"
        raise argparse.ArgumentTypeError(reason) from None


def mean(parts: list[tuple[Weights, float]]) -> Weights:
    """Of tensors with the same names and shapes; the weights are taken as shares of their sum."""
    first, total = parts[0][0], sum(weight for _, weight in parts)
    for weights, _ in parts[1:]:
        if {name: t.shape for name, t in weights.items()} != {name: t.shape for name, t in first.items()}:
            raise InputError("the files hold tensors of different names or shapes: no mean of them exists")
    return {
        name: sum(weights[name].float() * (weight / total) for weights, weight in parts).to(torch.bfloat16)
        for name in first
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="file to write")
    add("parts", type=_parse, nargs="+", metavar="FILE:WEIGHT", help="safetensors files and shares")
    options = parser.parse_args()
    if sum(weight for _, weight in options.parts) <= 0:
        raise InputError("the weights add up to nothing")
    weights = mean([(load_safetensors(path), weight) for path, weight in options.parts])
    save_safetensors(weights, options.out, {"format": "pt"})


if __name__ == "__main__":
    run_tool(main)
