"""One peer as a process: bench/peers.py writes lines "NAME SECONDS" to it and reads one line of JSON for each. The
protocol is that of the peers in C (bench/peer.h). Usage: peer_worker.py numpy|torch|mlx THREADS

NAME is a case of `mica bench`. The work is the same: shapes and dtypes; inputs are made before the timer starts, and
results are computed when it stops. Each peer uses its library as a user would, with its fused ops if it has them."""

import json
import math
import re
import sys
import time

PATTERNS = [
    ("matmul", r"matmul_(f32|bf16|f16|i8)_(\d+)(?:x(\d+))?"),
    ("linear", r"linear_(?:(bf16|i8)_)?(\d+)_b(\d+)"),
    ("gelu", r"gelu_(64k|16m)"),
    ("chain", r"chain_(64k|16m)"),
    ("softmax", r"softmax_(\d+)x(\d+)"),
    ("layernorm", r"layernorm_(\d+)x(\d+)"),
    ("rmsnorm", r"rmsnorm_(\d+)x(\d+)"),
    ("sum", r"sum_(all|rows|columns)_(\d+)x(\d+)"),
    ("transpose", r"transpose_(\d+)"),
    ("embedding", r"embedding_(\d+)x(\d+)"),
    ("take", r"take_(1m)"),
    ("sort", r"sort_(1m)"),
    ("random_normal", r"random_normal_(16m)"),
    ("attention", r"attention_s(\d+)_d(\d+)(_causal)?"),
    ("attention_decode", r"attention_decode_s(\d+)"),
    ("attention_grad", r"attention_grad_s(\d+)_d(\d+)"),
    ("conv", r"conv_(3x3|1x1|depthwise)_(\d+)_(\d+)"),
    ("conv_grad", r"conv_grad_(3x3|1x1|depthwise)_(\d+)_(\d+)"),
    ("mlp_step", r"mlp_step(_call)?"),
    ("liquid", r"(cfc|ltc)(_ncp)?(_step)?_(\d+)_b(\d+)"),
    ("tiny", r"tiny_(\d+)(_call)?"),
]
COUNTS = {"64k": 65536, "1m": 1 << 20, "16m": 1 << 24}
CONVS = {"3x3": (64, 64, 3, 1), "1x1": (256, 64, 1, 1), "depthwise": (128, 128, 3, 128)}  # in, out, kernel, groups


def parse(name):
    """Returns the kind of work and its parameters; digits are converted to numbers."""
    for kind, pattern in PATTERNS:
        match = re.fullmatch(pattern, name)
        if match:
            return kind, [COUNTS.get(g, int(g) if g and g.isdigit() else g) for g in match.groups()]
    raise NotImplementedError("this peer does not support the case")


def absent(why):
    raise NotImplementedError(why)


class Numpy:
    def __init__(self, threads):
        import numpy

        self.np = numpy
        self.rng = numpy.random.default_rng(1)
        self.version = "numpy " + numpy.__version__

    def normal(self, *shape):
        return self.rng.standard_normal(shape, dtype=self.np.float32)

    def matmul(self, dtype, n, batch):
        shape = (batch, n, n) if batch else (n, n)
        if dtype != "f32":
            absent("numpy multiplies " + dtype + " without BLAS")
        a, b = self.normal(*shape), self.normal(*shape)
        return lambda: a @ b

    def linear(self, dtype, size, batch):
        if dtype:
            absent("numpy multiplies " + dtype + " without BLAS")
        x, w = self.normal(batch, size), self.normal(size, size)
        return lambda: x @ w.T

    def gelu(self, n):
        np, x, k = self.np, self.normal(n), self.np.float32(math.sqrt(2 / math.pi))

        def run():
            t = x * 1.1 + 0.1
            return (0.5 * t * (1 + np.tanh(k * (t + 0.044715 * (t * t * t))))) * 0.9 - 0.2

        return run

    def chain(self, n):
        np, a, b, c = self.np, self.normal(n), self.normal(n), self.normal(n)

        def run():
            y = a * b + c
            y = np.maximum(y, a) - np.minimum(y, b)
            return np.sqrt(np.abs(y * c))

        return run

    def softmax(self, rows, columns):
        np, x = self.np, self.normal(rows, columns)

        def run():
            e = np.exp(x - x.max(axis=-1, keepdims=True))
            return e / e.sum(axis=-1, keepdims=True)

        return run

    def layernorm(self, rows, columns):
        np, x, w, b = self.np, self.normal(rows, columns), self.normal(columns), self.normal(columns)

        def run():
            centred = x - x.mean(axis=-1, keepdims=True)
            return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * w + b

        return run

    def rmsnorm(self, rows, columns):
        np, x, w = self.np, self.normal(rows, columns), self.normal(columns)
        return lambda: x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * w

    def sum(self, which, rows, columns):
        x, axis = self.normal(rows, columns), {"all": None, "rows": 1, "columns": 0}[which]
        return lambda: x.sum(axis=axis)

    def transpose(self, n):
        np, x = self.np, self.normal(n, n)
        return lambda: np.ascontiguousarray(x.T)

    def embedding(self, rows, columns):
        x, ids = self.normal(rows, columns), self.rng.integers(0, rows, 1024, dtype=self.np.int32)
        return lambda: x[ids]

    def take(self, n):
        x, ids = self.normal(COUNTS["16m"]), self.rng.integers(0, COUNTS["16m"], n, dtype=self.np.int32)
        return lambda: x[ids]

    def sort(self, n):
        np, x = self.np, self.normal(n)
        return lambda: np.sort(x, kind="stable")

    def random_normal(self, n):
        return lambda: self.rng.standard_normal(n, dtype=self.np.float32)

    def attention(self, time_, dims, causal):
        np, scale = self.np, self.np.float32(1 / math.sqrt(dims))
        q, k, v = (self.normal(8, time_, dims) for _ in range(3))
        mask = np.triu(np.full((time_, time_), -np.inf, dtype=np.float32), 1) if causal else None

        def run():
            s = (q @ k.transpose(0, 2, 1)) * scale
            if mask is not None:
                s = s + mask
            s = np.exp(s - s.max(axis=-1, keepdims=True))
            return (s / s.sum(axis=-1, keepdims=True)) @ v

        return run

    def attention_decode(self, keys):
        np, scale = self.np, self.np.float32(1 / math.sqrt(128))
        q, k, v = (self.normal(8, n, 128) for n in (1, keys, keys))

        def run():
            s = (q @ k.transpose(0, 2, 1)) * scale
            s = np.exp(s - s.max(axis=-1, keepdims=True))
            return (s / s.sum(axis=-1, keepdims=True)) @ v

        return run

    def attention_grad(self, *_):
        absent("numpy has no gradients")

    def conv(self, *_):
        absent("numpy has no convolution")

    def conv_grad(self, *_):
        absent("numpy has no convolution")

    def mlp_step(self, *_):
        absent("numpy has no gradients")

    def liquid(self, *_):
        absent("ncps is not measured with it")

    def tiny(self, nodes, call):
        if call:
            absent("numpy has no compiled functions")
        np, a, b, c = self.np, self.normal(16), self.normal(16), self.normal(16)

        def run():
            y = a
            for _ in range(nodes // 2):
                y = np.minimum(y + b, c)
            return y

        return run


class Torch:
    def __init__(self, threads):
        import torch

        self.torch = torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        torch.manual_seed(1)
        self.version = "torch " + torch.__version__

    def normal(self, *shape):
        return self.torch.randn(shape)

    def matmul(self, dtype, n, batch):
        torch = self.torch
        shape = (batch, n, n) if batch else (n, n)
        types = {"f32": torch.float32, "bf16": torch.bfloat16}
        if dtype not in types:
            absent("torch does not multiply %s on this CPU" % dtype)
        a, b = self.normal(*shape).to(types[dtype]), self.normal(*shape).to(types[dtype])
        return lambda: a @ b

    def linear(self, dtype, size, batch):
        if dtype == "i8":
            absent("torch does not multiply i8 on this CPU")
        of = self.torch.bfloat16 if dtype else self.torch.float32
        x, w, f = self.normal(batch, size).to(of), self.normal(size, size).to(of), self.torch.nn.functional.linear
        return lambda: f(x, w)

    def gelu(self, n):
        x, f = self.normal(n), self.torch.nn.functional.gelu
        return lambda: f(x * 1.1 + 0.1, approximate="tanh") * 0.9 - 0.2

    def chain(self, n):
        torch, a, b, c = self.torch, self.normal(n), self.normal(n), self.normal(n)

        def run():
            y = a * b + c
            y = torch.maximum(y, a) - torch.minimum(y, b)
            return torch.sqrt(torch.abs(y * c))

        return run

    def softmax(self, rows, columns):
        x, f = self.normal(rows, columns), self.torch.softmax
        return lambda: f(x, -1)

    def layernorm(self, rows, columns):
        x, w, b = self.normal(rows, columns), self.normal(columns), self.normal(columns)
        f = self.torch.nn.functional.layer_norm
        return lambda: f(x, (columns,), w, b, 1e-5)

    def rmsnorm(self, rows, columns):
        torch, x, w = self.torch, self.normal(rows, columns), self.normal(columns)
        return lambda: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w

    def sum(self, which, rows, columns):
        x, axis = self.normal(rows, columns), {"all": None, "rows": 1, "columns": 0}[which]
        return (lambda: x.sum()) if axis is None else (lambda: x.sum(axis))

    def transpose(self, n):
        x = self.normal(n, n)
        return lambda: x.T.contiguous()

    def embedding(self, rows, columns):
        x, ids = self.normal(rows, columns), self.torch.randint(0, rows, (1024,))
        f = self.torch.nn.functional.embedding
        return lambda: f(ids, x)

    def take(self, n):
        x, ids = self.normal(COUNTS["16m"]), self.torch.randint(0, COUNTS["16m"], (n,))
        return lambda: x[ids]

    def sort(self, n):
        x, f = self.normal(n), self.torch.sort
        return lambda: f(x, stable=True)

    def random_normal(self, n):
        return lambda: self.torch.randn(n)

    def attention(self, time_, dims, causal):
        torch = self.torch
        q, k, v = (self.normal(1, 8, time_, dims) for _ in range(3))
        fused = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
        if fused:
            return lambda: fused(q, k, v, is_causal=bool(causal))
        scale = 1 / math.sqrt(dims)
        mask = torch.full((time_, time_), -math.inf).triu(1) if causal else None

        def run():
            s = (q @ k.transpose(-1, -2)) * scale
            return torch.softmax(s if mask is None else s + mask, -1) @ v

        return run

    def attend(self, q, k, v):
        torch = self.torch
        fused = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
        if fused:
            return fused(q, k, v)
        return torch.softmax((q @ k.transpose(-1, -2)) * (1 / math.sqrt(q.shape[-1])), -1) @ v

    def attention_decode(self, keys):
        q, k, v = (self.normal(1, 8, n, 128) for n in (1, keys, keys))
        return lambda: self.attend(q, k, v)

    def gradients(self, f, inputs):
        """Gradients of the sum of f; the forward pass is not timed, and its graph is kept."""
        for x in inputs:
            x.requires_grad_(True)
        with self.torch.enable_grad():
            total = f(*inputs).sum()
        return lambda: self.torch.autograd.grad(total, inputs, retain_graph=True)

    def attention_grad(self, time_, dims):
        return self.gradients(self.attend, [self.normal(1, 8, time_, dims) for _ in range(3)])

    def conv(self, which, channels, size):
        c_in, c_out, kernel, groups = CONVS[which]
        x, w = self.normal(1, channels, size, size), self.normal(c_out, c_in // groups, kernel, kernel)
        f = self.torch.nn.functional.conv2d
        return lambda: f(x, w, padding=kernel // 2, groups=groups)

    def conv_grad(self, which, channels, size):
        c_in, c_out, kernel, groups = CONVS[which]
        f = self.torch.nn.functional.conv2d
        return self.gradients(
            lambda x, w: f(x, w, padding=kernel // 2, groups=groups),
            [self.normal(1, channels, size, size), self.normal(c_out, c_in // groups, kernel, kernel)],
        )

    def mlp_step(self, call):
        if call:
            absent("a compiled training step is not in this version")
        torch = self.torch
        x, labels = self.normal(128, 784), torch.randint(0, 10, (128,))
        params = [self.normal(*s) * 0.05 for s in ((784, 512), (512,), (512, 10), (10,))]
        cross_entropy = torch.nn.functional.cross_entropy

        def run():
            with torch.enable_grad():
                p = [t.detach().requires_grad_() for t in params]
                loss = cross_entropy(torch.relu(x @ p[0] + p[1]) @ p[2] + p[3], labels)
                grads = torch.autograd.grad(loss, p)
            return [t - 0.01 * g for t, g in zip(params, grads)]

        return run

    def liquid(self, cell, ncp, step, units, batch):
        """ncps: 16 inputs, 32 steps; one step of Adam on the mean square error."""
        try:
            import ncps.torch, ncps.wirings
        except ImportError:
            absent("ncps is not installed")
        torch = self.torch
        wiring = ncps.wirings.AutoNCP(units, 8) if ncp else units
        net = (ncps.torch.CfC if cell == "cfc" else ncps.torch.LTC)(16, wiring)
        x = self.normal(batch, 32, 16)
        if not step:
            return lambda: net(x)
        target, adam = self.normal(batch, 32, 8 if ncp else units), torch.optim.Adam(net.parameters(), lr=1e-3)

        def run():
            with torch.enable_grad():
                adam.zero_grad()
                loss = torch.nn.functional.mse_loss(net(x)[0], target)
                loss.backward()
            adam.step()

        return run

    def tiny(self, nodes, call):
        torch, a, b, c = self.torch, self.normal(16), self.normal(16), self.normal(16)

        def run(a=a, b=b, c=c):
            y = a
            for _ in range(nodes // 2):
                y = torch.minimum(y + b, c)
            return y

        if not call:
            return run
        traced = torch.jit.trace(lambda a, b, c: run(a, b, c), (a, b, c))
        return lambda: traced(a, b, c)


class Mlx:
    def __init__(self, threads):
        import mlx.core as mx

        mx.set_default_device(mx.cpu)
        self.mx = mx
        self.version = "mlx " + mx.__version__ + " (cpu)"

    def normal(self, *shape):
        x = self.mx.random.normal(shape)
        self.mx.eval(x)
        return x

    def lazy(self, build):
        return lambda: self.mx.eval(build())

    def matmul(self, dtype, n, batch):
        mx = self.mx
        types = {"f32": mx.float32, "bf16": mx.bfloat16, "f16": mx.float16}
        if dtype not in types:
            absent("mlx multiplies floats only")
        shape = (batch, n, n) if batch else (n, n)
        a, b = (self.normal(*shape).astype(types[dtype]) for _ in range(2))
        mx.eval(a, b)
        return self.lazy(lambda: a @ b)

    def linear(self, dtype, size, batch):
        if dtype == "i8":
            absent("mlx multiplies floats only")
        of = self.mx.bfloat16 if dtype else self.mx.float32
        x, w = self.normal(batch, size).astype(of), self.normal(size, size).astype(of)
        self.mx.eval(x, w)
        return self.lazy(lambda: x @ w.T)

    def gelu(self, n):
        mx, x, k = self.mx, self.normal(n), math.sqrt(2 / math.pi)

        def run():
            t = x * 1.1 + 0.1
            return (0.5 * t * (1 + mx.tanh(k * (t + 0.044715 * (t * t * t))))) * 0.9 - 0.2

        return self.lazy(run)

    def chain(self, n):
        mx, a, b, c = self.mx, self.normal(n), self.normal(n), self.normal(n)

        def run():
            y = a * b + c
            y = mx.maximum(y, a) - mx.minimum(y, b)
            return mx.sqrt(mx.abs(y * c))

        return self.lazy(run)

    def softmax(self, rows, columns):
        x = self.normal(rows, columns)
        return self.lazy(lambda: self.mx.softmax(x, axis=-1))

    def layernorm(self, rows, columns):
        x, w, b = self.normal(rows, columns), self.normal(columns), self.normal(columns)
        return self.lazy(lambda: self.mx.fast.layer_norm(x, w, b, 1e-5))

    def rmsnorm(self, rows, columns):
        x, w = self.normal(rows, columns), self.normal(columns)
        return self.lazy(lambda: self.mx.fast.rms_norm(x, w, 1e-5))

    def sum(self, which, rows, columns):
        x, axis = self.normal(rows, columns), {"all": None, "rows": 1, "columns": 0}[which]
        return self.lazy(lambda: x.sum(axis=axis))

    def transpose(self, n):
        x = self.normal(n, n)
        return self.lazy(lambda: self.mx.contiguous(x.T))

    def embedding(self, rows, columns):
        x, ids = self.normal(rows, columns), self.mx.random.randint(0, rows, (1024,))
        self.mx.eval(ids)
        return self.lazy(lambda: x[ids])

    def take(self, n):
        x, ids = self.normal(COUNTS["16m"]), self.mx.random.randint(0, COUNTS["16m"], (n,))
        self.mx.eval(ids)
        return self.lazy(lambda: x[ids])

    def sort(self, n):
        x = self.normal(n)
        return self.lazy(lambda: self.mx.sort(x))

    def random_normal(self, n):
        return self.lazy(lambda: self.mx.random.normal((n,)))

    def attention(self, time_, dims, causal):
        q, k, v = (self.normal(1, 8, time_, dims) for _ in range(3))
        fused, scale = self.mx.fast.scaled_dot_product_attention, 1 / math.sqrt(dims)
        return self.lazy(lambda: fused(q, k, v, scale=scale, mask="causal" if causal else None))

    def attention_decode(self, keys):
        q, k, v = (self.normal(1, 8, n, 128) for n in (1, keys, keys))
        fused, scale = self.mx.fast.scaled_dot_product_attention, 1 / math.sqrt(128)
        return self.lazy(lambda: fused(q, k, v, scale=scale))

    def attention_grad(self, *_):
        absent("not compared: its gradients are not measured here")

    def conv_grad(self, *_):
        absent("not compared: its gradients are not measured here")

    def conv(self, which, channels, size):
        c_in, c_out, kernel, groups = CONVS[which]
        x, w = self.normal(1, size, size, channels), self.normal(c_out, kernel, kernel, c_in // groups)
        return self.lazy(lambda: self.mx.conv2d(x, w, padding=kernel // 2, groups=groups))

    def mlp_step(self, call):
        mx, x, labels = self.mx, self.normal(128, 784), self.mx.random.randint(0, 10, (128,))
        params = [self.normal(*s) * 0.05 for s in ((784, 512), (512,), (512, 10), (10,))]
        mx.eval(params, labels)

        def loss(p):
            logits = mx.maximum(x @ p[0] + p[1], 0) @ p[2] + p[3]
            picked = mx.take_along_axis(logits, labels[:, None], axis=-1).squeeze(-1)
            return (mx.logsumexp(logits, axis=-1) - picked).mean()

        step = mx.value_and_grad(loss)

        def run(p=params):
            value, grads = step(p)
            return [value] + [t - 0.01 * g for t, g in zip(p, grads)]

        return self.lazy(mx.compile(run) if call else run)

    def liquid(self, *_):
        absent("ncps is not measured with it")

    def tiny(self, nodes, call):
        mx, a, b, c = self.mx, self.normal(16), self.normal(16), self.normal(16)

        def run(a, b, c):
            y = a
            for _ in range(nodes // 2):
                y = mx.minimum(y + b, c)
            return y

        built = mx.compile(run) if call else run
        return self.lazy(lambda: built(a, b, c))


def sample(run, seconds):
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 100000):
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return sorted(times)


def make(peer, name, made={}):
    """Returns the work of a case; the last one is cached, because its rounds follow each other."""
    if name not in made:
        made.clear()
        kind, args = parse(name)
        made[name] = getattr(peer, kind)(*args)
    return made[name]


def measure(peer, name, seconds):
    try:
        run = make(peer, name)
        sample(run, seconds / 5)
        times = sample(run, seconds)
        return {"fastest_ns": times[0], "median_ns": times[len(times) // 2], "runs": len(times)}
    except NotImplementedError as why:
        return {"absent": str(why)}
    except Exception as why:  # a peer that cannot do one thing must not end the run
        return {"absent": (type(why).__name__ + ": " + str(why)).splitlines()[0][:200]}


def main():
    peer = {"numpy": Numpy, "torch": Torch, "mlx": Mlx}[sys.argv[1]](int(sys.argv[2]))
    print(json.dumps({"version": peer.version}), flush=True)
    for line in sys.stdin:
        name, seconds = line.split()
        print(json.dumps(measure(peer, name, float(seconds))), flush=True)


if __name__ == "__main__":
    main()
