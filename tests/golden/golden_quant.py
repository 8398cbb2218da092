#!/usr/bin/env python3
"""Writes quant.txt: block formats by gguf and MLX.

    pip install gguf mlx
    python3 tests/golden/golden_quant.py > tests/golden/quant.txt

Inputs are a stream of x = (s >> 16) - 32768, over 4096, with s = s * 1664525 + 1013904223 mod 2^32 from a seed, so that
the test can generate them. Lines, all bytes in hex:
    unpack NAME : bytes of the blocks : their values as f32
    pack NAME SEED COUNT : bytes
    affine BITS GROUP SEED COUNT : bytes : scales as f32 : biases as f32
"""
import numpy as np
import gguf
import gguf.quants as quants


def stream(seed, count):
    out, s = [], seed
    for _ in range(count):
        s = (s * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(((s >> 16) - 32768) / 4096)
    return np.array(out, dtype=np.float32)


def random_blocks(seed, kind, count):
    """Any codes, but scales that are ordinary numbers."""
    _, size = gguf.GGML_QUANT_SIZES[kind]
    offsets = {"Q4_1": [0, 2], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "TQ1_0": [52],
               "TQ2_0": [64]}.get(kind.name, [0])
    blocks = ((stream(seed, size * count) * 4096).astype(np.int64) & 255).astype(np.uint8).reshape(count, size)
    for k in range(count):
        for i, at in enumerate(offsets):
            scale = np.float16(0.01 * (k + 1) * (i + 1) * (-1 if k == 1 else 1))
            blocks[k, at:at + 2] = np.frombuffer(scale.tobytes(), dtype=np.uint8)
    return blocks.reshape(-1)


def main():
    print("# Made by tests/golden/golden_quant.py. Do not edit.")
    kinds = gguf.GGMLQuantizationType
    for seed, name in enumerate("Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q4_K Q5_K Q6_K TQ1_0 TQ2_0 BF16".split(), 1):
        kind = kinds[name]
        if name != "BF16":
            blocks = random_blocks(seed, kind, 2)
            if name == "TQ1_0":  # only bytes that represent trits
                trits = (stream(seed, 512) * 4096).astype(np.int64) % 3 - 1
                blocks = quants.quantize(trits.astype(np.float32) * np.float32(0.25), kind).reshape(-1)
            values = quants.dequantize(blocks, kind).astype(np.float32)
            print("unpack", name, ":", blocks.tobytes().hex(), ":", values.tobytes().hex())
        if name not in ("Q4_K", "Q5_K", "Q6_K"):
            packed = quants.quantize(stream(seed + 100, 512), kind)
            print("pack", name, seed + 100, 512, ":", packed.tobytes().hex())
    import mlx.core as mx
    for bits in (2, 3, 4, 5, 6, 8):
        for group in (32, 64, 128):
            seed = bits * 1000 + group
            w = mx.array(stream(seed, 256).reshape(2, 128))
            q, scales, biases = mx.quantize(w, group_size=group, bits=bits)
            print("affine", bits, group, seed, 256, ":", np.array(q).tobytes().hex(), ":",
                  np.array(scales).tobytes().hex(), ":", np.array(biases).tobytes().hex())


if __name__ == "__main__":
    main()
