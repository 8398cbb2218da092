"""Layers, losses and optimisers of mica_nn.h: results and gradients by PyTorch in
double. Functions that PyTorch 1.13 lacks (Lion, heads that share keys) are implemented here."""
import numpy as np
import torch
import torch.nn.functional as F

import golden_nn as nn
from golden_format import *
from golden_grad import Maker

# As in include/mica_nn.h.
ACTIVATIONS = [
    lambda x: x,
    torch.relu,
    lambda x: torch.relu(x) ** 2,
    lambda x: F.leaky_relu(x, 0.01),
    F.elu,
    F.gelu,
    lambda x: F.gelu(x, approximate="tanh"),
    F.silu,
    torch.tanh,
    lambda x: 1.7159 * torch.tanh(2 * x / 3),
    torch.sigmoid,
    F.softplus,
]
SGD, ADAM, ADAMW, LION = range(4)


def turned(x, reverse):
    return torch.flip(x, [0]) if reverse else x


def lstm(reverse):
    def f(x, h, c, w_in, w_state, b_in=None, b_state=None):
        weights = [w_in, w_state] + ([b_in, b_state] if b_in is not None else [])
        y, h, c = torch._VF.lstm(
            turned(x, reverse), (h[None], c[None]), weights, b_in is not None, 1, 0.0, False, False, False
        )
        return turned(y, reverse), h[0], c[0]

    return f


def gru(reverse):
    def f(x, h, w_in, w_state, b_in=None, b_state=None):
        weights = [w_in, w_state] + ([b_in, b_state] if b_in is not None else [])
        y, h = torch._VF.gru(turned(x, reverse), h[None], weights, b_in is not None, 1, 0.0, False, False, False)
        return turned(y, reverse), h[0]

    return f


def recurrent(m):
    time, batch, size, units = 4, 2, 3, 2
    for dtype in ("f64", "f32"):
        for reverse in (0, 1):
            for biases in (0, 1):
                tag = "%d%d" % (reverse, biases)
                if dtype == "f32" and tag != "01":
                    continue
                x, h, c = m.normal(time, batch, size), m.normal(batch, units), m.normal(batch, units)
                for name, gates, fn in (("lstm", 4, lstm), ("gru", 3, gru)):
                    ins = [x, h] + ([c] if name == "lstm" else [])
                    ins += [m.normal(gates * units, size), m.normal(gates * units, units)]
                    ins += [m.normal(gates * units), m.normal(gates * units)] if biases else []
                    attrs = {"reverse": reverse, "biases": biases}
                    m.case("layers/%s/%s" % (name, tag), name, fn(reverse), ins, attrs, dtype=dtype, scale=4)


def batch_norm(m):
    for shape in ((5, 3), (2, 3, 3), (2, 3, 2, 2)):
        for training in (0, 1):
            for affine in (0, 1):
                mean, var = rnd("f64", m.normal(3)), rnd("f64", m.uniform(0.5, 2, 3))

                def f(x, w, b, mean, var):
                    mean, var = mean.clone(), var.clone()
                    y = F.batch_norm(x, mean, var, w, b, bool(training), 0.25, 1e-3)
                    return (y, mean, var) if training else y

                ins = [m.normal(*shape)] + ([m.normal(3), m.normal(3)] if affine else [None, None]) + [mean, var]
                attrs = {"training": training, "momentum": 0.25, "eps": 1e-3}
                m.case("layers/batch_norm/%d/%d%d" % (len(shape), training, affine), "batch_norm", f, ins, attrs)


def multi_head(m):
    for heads, kv_heads, causal, base, keys in ((2, 2, 0, 0.0, 5), (4, 2, 1, 0.0, 3), (2, 1, 1, 100.0, 3)):
        dim = 2

        def split(x, n):
            return x.reshape(x.shape[0], x.shape[1], n, dim).transpose(1, 2)

        def f(q, k, v):
            q, k, v = split(q, heads), split(k, kv_heads), split(v, kv_heads)
            if base:
                q, k = nn.rope(q, base=base), nn.rope(k, base=base)
            y = nn.attention(q, k, v, causal=bool(causal)).transpose(1, 2)
            return y.reshape(y.shape[0], y.shape[1], heads * dim)

        ins = [m.normal(1, 3, heads * dim), m.normal(1, keys, kv_heads * dim), m.normal(1, keys, kv_heads * dim)]
        attrs = {"heads": heads, "kv_heads": kv_heads, "causal": causal, "rope_base": base}
        m.case("layers/multi_head/%d%d%d" % (heads, kv_heads, causal), "multi_head", f, ins, attrs)


def simple(m):
    for dtype in ("f64", "f32"):
        m.case("layers/linear", "linear", F.linear, [m.normal(3, 5), m.normal(4, 5), m.normal(4)], dtype=dtype, scale=8)
        m.case("layers/linear_plain", "linear", F.linear, [m.normal(2, 3, 5), m.normal(4, 5), None], dtype=dtype, scale=8)
    for i, fn in enumerate(ACTIVATIONS):
        m.case("layers/activate/%d" % i, "activate", fn, [m.normal(3, 5)], {"activation": i})


def losses(m):
    labels = arr("i32", np.array([0, 3, 2, 3]))
    for dtype in ("f64", "f32"):
        y, t = m.normal(3, 4), m.normal(3, 4)
        m.case("losses/mse", "mse_loss", F.mse_loss, [y, t], dtype=dtype)
        m.case("losses/mae", "mae_loss", F.l1_loss, [y, t], dtype=dtype)
        for delta in (0.5, 1.5):
            fn = lambda a, b: F.huber_loss(a, b, delta=delta)
            m.case("losses/huber/%g" % delta, "huber_loss", fn, [y, t], {"delta": delta}, dtype=dtype)
        logits = np.concatenate([m.normal(2, 4), np.array([[0.0, 40, -40, 12], [-30, 0, 88, -3]])])
        target = np.round(m.uniform(0, 1, 4, 4) * 4) / 4
        m.case("losses/bce", "bce_loss", F.binary_cross_entropy_with_logits, [logits, target], dtype=dtype, wrt=[0])
        for smoothing in (0.0, 0.125):
            fn = lambda x, l: F.cross_entropy(x, l, label_smoothing=smoothing)
            m.case(
                "losses/cross_entropy/%g" % smoothing,
                "cross_entropy_loss",
                fn,
                [m.normal(4, 5), labels],
                {"smoothing": smoothing},
                dtype=dtype,
            )


def lion(p, grads, rate, decay, betas):
    m = np.zeros_like(p)
    for g in grads:
        p = p - rate * (np.sign(betas[0] * m + (1 - betas[0]) * g) + decay * p)
        m = betas[1] * m + (1 - betas[1]) * g
    return p


def optimise(kind, p, grads, rate, decay, betas, momentum, nesterov):
    if kind == LION:
        return lion(p, grads, rate, decay, betas)
    t = torch.from_numpy(p.copy()).requires_grad_()
    if kind == SGD:
        o = torch.optim.SGD([t], rate, momentum, weight_decay=decay, nesterov=nesterov)
    else:
        o = (torch.optim.Adam if kind == ADAM else torch.optim.AdamW)([t], rate, betas, weight_decay=decay)
    for g in grads:
        t.grad = torch.from_numpy(g.copy())
        o.step()
    return t.detach().numpy()


def optimisers(m):
    """Five steps. Rates are f32, so those here are exact in it; the corrections of Adam are not."""
    cases = [(SGD, 0.0, False), (SGD, 0.75, False), (SGD, 0.75, True), (ADAM, 0, 0), (ADAMW, 0, 0), (LION, 0, 0)]
    for kind, momentum, nesterov in cases:
        for decay in (0.0, 0.125):
            p, grads = m.normal(3, 4), [m.normal(3, 4) for _ in range(5)]
            rate, betas = 0.0625, (0.9, 0.97)
            want = optimise(kind, p, grads, rate, decay, betas, momentum, bool(nesterov))
            m.book.case(
                "optimisers/%d/%g%d/%g" % (kind, momentum, nesterov, decay),
                "optimise",
                [rnd("f64", x) for x in [p] + grads],
                [rnd("f64", want)],
                {
                    "kind": kind,
                    "momentum": float(momentum),
                    "nesterov": int(nesterov),
                    "rate": rate,
                    "decay": decay,
                    "beta1": betas[0],
                    "beta2": betas[1],
                },
                tol=(1e-12, 1e-12) if kind in (SGD, LION) else (1e-6, 1e-7),
            )
    for norm, value in ((0.0, 0.25), (1.5, 0.0), (50.0, 0.0), (1.5, 0.25)):
        ins = [m.normal(3, 4), m.normal(5)]
        a, b = (torch.from_numpy(x.copy()).requires_grad_() for x in ins)
        a.grad, b.grad = (torch.from_numpy(x.copy()) for x in ins)
        length = float(torch.sqrt((a.grad ** 2).sum() + (b.grad ** 2).sum()))
        if norm:
            torch.nn.utils.clip_grad_norm_([a, b], norm)
        if value:
            torch.nn.utils.clip_grad_value_([a, b], value)
        m.book.case(
            "optimisers/clip/%g/%g" % (norm, value),
            "clip_gradients",
            [rnd("f64", x) for x in ins],
            [rnd("f64", a.grad.numpy()), rnd("f64", b.grad.numpy()), rnd("f64", np.array(length))],
            {"norm": norm, "value": value},
            tol=(1e-5, 1e-9),  # PyTorch adds 1e-6 to the norm
        )


def make(seed):
    book, rng = Book("layers"), np.random.default_rng(seed)
    m = Maker(book, rng)
    simple(m)
    recurrent(m)
    batch_norm(m)
    multi_head(m)
    losses(m)
    optimisers(m)
    return {"layers": book}
