#!/usr/bin/env python3
"""Renders chat templates with jinja2 for tests/differential/diff_jinja.c, with the settings of transformers.

Reads from stdin: the number of contexts and the contexts; then, until the end, requests of a template, the index of the
first context, and a count. Answers each request with a status and a text for each context: O and the text, R and the
message given to raise_exception, or E and the name and message of an exception. Lengths are 32-bit little-endian.

    jinja_peer.py --version     prints the version of jinja2"""
import json
import resource
import signal
import struct
import sys
import warnings

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS = 10  # of one request: a template may loop for hours
MEMORY = 2 << 30


class Generation(Extension):
    """{% generation %}: as in transformers, the body is rendered as a call block."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("render_body"), [], [], body).set_lineno(line)

    @staticmethod
    def render_body(caller):
        return caller()


class Raised(Exception):
    pass


class Timeout(BaseException):
    pass


def raise_exception(message):
    raise Raised(str(message))


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def on_alarm(_number, _frame):
    raise Timeout()


def make_environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols],
                                        cache_size=0)
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


def read(n):
    data = sys.stdin.buffer.read(n)
    if len(data) < n:
        sys.exit(0)
    return data


def read_number():
    return struct.unpack("<I", read(4))[0]


def read_text():
    return read(read_number()).decode("utf-8")


def read_context():
    context = {"add_generation_prompt": read_number() != 0, "tools": None, "documents": None}
    for name in ("bos_token", "eos_token"):
        if read_number():
            context[name] = read_text()
    context["messages"] = [{"role": read_text(), "content": read_text()} for _ in range(read_number())]
    return context


def describe(error):
    return b"E", (type(error).__name__ + ": " + str(error)).encode("utf-8", "backslashreplace")


def render(template, context):
    try:
        return b"O", template.render(**context).encode("utf-8", "surrogatepass")
    except Raised as error:
        return b"R", str(error).encode("utf-8", "backslashreplace")
    except Exception as error:
        return describe(error)


def answer(env, source, contexts):
    signal.alarm(SECONDS)
    try:
        try:
            template = env.from_string(source)
        except Exception as error:
            return [describe(error)] * len(contexts)
        return [render(template, context) for context in contexts]
    except Timeout:
        return [(b"E", b"Timeout: ")] * len(contexts)
    finally:
        signal.alarm(0)


def main():
    if sys.argv[1:] == ["--version"]:
        print("jinja2", jinja2.__version__)
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")  # SyntaxWarning about templates such as {{ true[0] }}
    sys.set_int_max_str_digits(0) if hasattr(sys, "set_int_max_str_digits") else None
    signal.signal(signal.SIGALRM, on_alarm)
    env = make_environment()
    contexts = [read_context() for _ in range(read_number())]
    while True:
        source = read_text()
        first, count = read_number(), read_number()
        chosen = [contexts[(first + i) % len(contexts)] for i in range(count)]
        out = bytearray()
        for status, text in answer(env, source, chosen):
            out += status + struct.pack("<I", len(text)) + text
        sys.stdout.buffer.write(out)
        sys.stdout.buffer.flush()


main()
