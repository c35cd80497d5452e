#!/usr/bin/env python3
"""tests/tools/json_keys.py - check that a command's JSON has the stable keys.

usage: json_keys.py COMMAND FILE

Programs that parse the output depend on the keys below: none may be removed or
change its type.  Keys may be added.  Prints the first error and exits with 1.
"""
import json
import sys


def whole(v):
    return isinstance(v, int) and not isinstance(v, bool)


def size(v):
    return whole(v) and v >= 0


def number(v):
    return whole(v) or isinstance(v, float)


def positive(v):
    return number(v) and v > 0


def text(v):
    return isinstance(v, str)


def word(v):
    return text(v) and v != ""


def flag(v):
    return isinstance(v, bool)


def layer(v):
    return v is None or size(v)


def layers(v):
    return v is None or (isinstance(v, list) and len(v) == 2 and
                         size(v[0]) and size(v[1]) and v[0] <= v[1])


def hash64(v):
    return text(v) and len(v) == 16 and set(v) <= set("0123456789abcdef")


def bound(v):
    return v in ("int8", "bf16", "f32", "read", "disk")


def optional(check):
    return lambda v: v is None or check(v)


def list_of(shape):
    return lambda v: isinstance(v, list) and v != [] and \
        all(errors(shape, x) is None for x in v)


def dict_of(shape):
    return lambda v: isinstance(v, dict) and \
        all(errors(shape, x) is None for x in v.values())


PLANNED = {
    "name": word, "device": word, "embedding": flag, "layers": layers,
    "attention": layers, "ffn": layers,
    "head": flag, "cap": size, "weights": size, "kv": size, "compute": size,
    "staging": size, "rings": size, "runtime": size, "emulator": size,
}
RUN = dict(PLANNED, peak=size, unaccounted=whole, enforced_by=word,
           huge=optional(size), huge_asked=size, peak_from=word,
           limit=optional(size), no_group_because=optional(word),
           emulator_measured=optional(size), emulator_files=optional(size),
           in_domain=optional(size), device_bytes=size, device_slack=size,
           pinned=size)
# A process that is no session has the same columns, null where none applies.
PROCESS = dict({key: optional(size) for key in PLANNED
                if PLANNED[key] is size},
               name=word, device=optional(word), planned=optional(size),
               enforced_by=word, limit=optional(size),
               no_group_because=optional(word), unaccounted=optional(whole))
PROCESS_PLANNED = dict(PROCESS, peak=optional(size), peak_from=optional(word),
                       pid=optional(size))
PROCESS_RUN = dict(PROCESS, peak=size, peak_from=word, pid=positive)

KINDS = {
    "plan": {"sessions": PLANNED, "processes": PROCESS_PLANNED},
    "run": {
        "sessions": RUN, "processes": PROCESS_RUN, "text": text, "logits_hash": hash64,
        "reserve_s": positive, "reserve_bytes": positive,
        "prompt_tokens": positive, "prompt_tokens_read": positive,
        "load_s": positive, "load_gbs": positive, "prompt_tps": positive,
        "gen_tps": positive, "ttft_s": positive,
    },
    "bench": {
        "roofline": {"read_gbs": list_of(positive),
                     "int8_gops": list_of(positive),
                     "f32_gflops": list_of(positive),
                     "disk_gbs": optional(positive)},
        "results": {"test": word, "tps": optional(positive), "sd": number,
                    "bound": bound, "fraction": optional(positive),
                    "no_fraction_because": optional(word)},
    },
    "explain": {
        "ops": {"session": word, "layer": layer, "op": word, "tensor": text,
                "where": word, "reason": text},
        "summary": {"session": word, "device_ops": size, "cpu_ops": size},
    },
    "stress": {"cases": {"name": word, "held": flag, "detail": word}},
    "devices": {
        "devices": {"kind": word, "found": flag, "reason": word,
                    "limits": dict_of({"value": optional(number),
                                       "from": word})},
    },
}
# The values of these keys are lists of such objects.
LISTS = ("sessions", "processes", "results", "ops", "summary", "cases",
         "devices")


def errors(shape, v, where=""):
    """The first error in v, or None."""
    if not isinstance(shape, dict):
        return None if shape(v) else f"{where}: {v!r} is not a {shape.__name__}"
    if not isinstance(v, dict):
        return f"{where}: not an object"
    for key, inner in shape.items():
        at = f"{where}.{key}"
        if key not in v:
            return f"{at}: missing"
        many = key in LISTS and isinstance(inner, dict)
        if many and not (isinstance(v[key], list) and v[key]):
            return f"{at}: not a list, or an empty one"
        for x in v[key] if many else [v[key]]:
            e = errors(inner, x, at)
            if e is not None:
                return e
    return None


def main():
    with open(sys.argv[2], "rb") as fp:
        data = fp.read().decode("utf-8")
    e = errors(KINDS[sys.argv[1]], json.loads(data))
    if e is not None:
        sys.exit(f"json_keys: {sys.argv[1]}{e}")


main()
