#!/usr/bin/python3
"""Writes the golden files of this folder with NumPy, SciPy and PyTorch.

    apt-get install python3-numpy python3-scipy python3-torch    (Debian 12)
    /usr/bin/python3 tests/golden/make_golden.py [--check]

--check writes nothing and fails if a file on disk would change. Each file has its
own seed, so adding cases to one does not change the others. tests/parity/test_golden.c
reads them; golden_format.py describes the format."""
import os
import sys

sys.dont_write_bytecode = True

import golden_array
import golden_binary
import golden_grad
import golden_large
import golden_layers
import golden_model
import golden_nn
import golden_random
import golden_reduce
import golden_unary

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    check = "--check" in sys.argv[1:]
    total, changed = 0, []
    modules = (
        golden_unary,
        golden_binary,
        golden_array,
        golden_random,
        golden_reduce,
        golden_nn,
        golden_grad,
        golden_large,
        golden_model,
        golden_layers,
    )
    for seed, module in enumerate(modules, 1):
        for name, book in module.make(seed).items():
            path, text = os.path.join(HERE, name + ".txt"), book.text()
            total += len(text)
            old = open(path).read() if os.path.exists(path) else None
            if old != text:
                changed.append(name)
                if not check:
                    with open(path, "w") as f:
                        f.write(text)
            print("%-12s %5d cases %8d bytes%s" % (name, book.count, len(text), "  changed" if old != text else ""))
    print("%d bytes" % total)
    assert total < 1650000
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
