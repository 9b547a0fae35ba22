#!/usr/bin/env python3
"""Writes a model folder of S2-Pro's sizes (9.1 GB in shards of at most 5 GB; `--layers N`: fewer slow layers) with weights that mean nothing: to
measure how it is loaded. Tokenizer and codec are those of the tiny test fixtures, so it does not speak.

  tools/s2_sized_checkpoint.py FOLDER [--layers N]
"""
import argparse
import json
import shutil
import struct
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "tests/data/fish"
DIM, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, VOCAB, CODES, CODEBOOKS = 2560, 32, 8, 128, 9728, 155776, 4096, 10
SHARD_BYTES = 5_000_000_000


def block(prefix: str, with_norms: bool) -> dict[str, list[int]]:
    norms = {f"{prefix}.attention.{name}_norm.weight": [HEAD_DIM] for name in "qk"} if with_norms else {}
    return norms | {
        f"{prefix}.attention.wqkv.weight": [(HEADS + 2 * KV_HEADS) * HEAD_DIM, DIM],
        f"{prefix}.attention.wo.weight": [DIM, HEADS * HEAD_DIM],
        f"{prefix}.feed_forward.w1.weight": [HIDDEN, DIM],
        f"{prefix}.feed_forward.w3.weight": [HIDDEN, DIM],
        f"{prefix}.feed_forward.w2.weight": [DIM, HIDDEN],
        f"{prefix}.attention_norm.weight": [DIM],
        f"{prefix}.ffn_norm.weight": [DIM],
    }


def tensors(layers: int) -> dict[str, list[int]]:
    shapes = {"text_model.model.embeddings.weight": [VOCAB, DIM],
              "audio_decoder.codebook_embeddings.weight": [CODEBOOKS * CODES, DIM]}
    for layer in range(layers):
        shapes |= block(f"text_model.model.layers.{layer}", True)
    shapes["text_model.model.norm.weight"] = [DIM]
    for layer in range(4):
        shapes |= block(f"audio_decoder.layers.{layer}", False)
    return shapes | {"audio_decoder.embeddings.weight": [CODES, DIM], "audio_decoder.norm.weight": [DIM],
                     "audio_decoder.output.weight": [CODES, DIM]}


def size_of(shape: list[int]) -> int:
    return 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)


def shards_of(shapes: dict[str, list[int]]) -> list[dict[str, list[int]]]:
    shards, size = [{}], 0
    for name, shape in shapes.items():
        if size + size_of(shape) > SHARD_BYTES:
            shards.append({})
            size = 0
        shards[-1][name] = shape
        size += size_of(shape)
    return shards


def write_shard(path: Path, shapes: dict[str, list[int]]) -> None:
    header, offset = {}, 0
    for name, shape in shapes.items():
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size_of(shape)]}
        offset += size_of(shape)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    filler = struct.pack("<4H", 0x3C8F, 0xBC11, 0x3C45, 0xBCA3) * (1 << 17)  # 0.017, -0.009, 0.012, -0.020
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        while offset:
            file.write(filler[:offset])
            offset -= min(offset, len(filler))


def write_config(folder: Path, layers: int) -> None:
    config = json.loads((FIXTURES / "set_s2/config.json").read_text())
    tokenizer = json.loads((FIXTURES / "set_s2/tokenizer.json").read_text())
    like = dict(next(token for token in tokenizer["added_tokens"] if token["content"] == "<|semantic:0|>"))
    tokenizer["added_tokens"] = [token for token in tokenizer["added_tokens"] if "semantic" not in token["content"]]
    tokenizer["added_tokens"] += [like | {"id": like["id"] + code, "content": f"<|semantic:{code}|>"} for code in range(CODES)]
    config["semantic_start_token_id"], config["semantic_end_token_id"] = like["id"], like["id"] + CODES - 1
    sizes = {"dim": DIM, "n_head": HEADS, "n_local_heads": KV_HEADS, "head_dim": HEAD_DIM, "intermediate_size": HIDDEN}
    config["text_config"] |= sizes | {"vocab_size": VOCAB, "n_layer": layers, "max_seq_len": 32768}
    config["audio_decoder_config"] |= sizes | {"vocab_size": CODES, "text_dim": DIM, "n_layer": 4, "num_codebooks": CODEBOOKS}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    for name in ("set_s2/tokenizer_config.json", "set_a/codec.pth", "set_a/codec_config.json"):
        shutil.copy(FIXTURES / name, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=36)
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    write_config(options.folder, options.layers)
    shards = shards_of(tensors(options.layers))
    index = {"metadata": {"total_size": sum(size_of(shape) for shard in shards for shape in shard.values())}, "weight_map": {}}
    for number, shapes in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        write_shard(options.folder / name, shapes)
        index["weight_map"] |= dict.fromkeys(shapes, name)
    (options.folder / "model.safetensors.index.json").write_text(json.dumps(index))
    print(f"{options.folder}: {len(index['weight_map'])} tensors, {index['metadata']['total_size'] / 1e9:.1f} GB")


if __name__ == "__main__":
    main()
