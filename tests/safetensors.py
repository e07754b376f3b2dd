"""safetensors.py: .safetensors files by the format's description alone, with struct and json.

    safetensors.py write        a file with every dtype, as tests/safetensors_sample.h has it
    safetensors.py read FILE    checks a file strictly and prints a line a tensor: name, dtype, shape, bytes
"""
import json
import struct
import sys

SIZES = {"BOOL": 1, "I8": 1, "U8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4,
         "I64": 8, "U64": 8, "F64": 8}
TENSORS = [  # in the order of the header; their bytes lie in another
    ("a.weight", "F32", [2, 3], struct.pack("<6f", 1, -2, 3.5, 0, 5, 6)),
    ("d", "F64", [], struct.pack("<d", 2.5)),
    ("h", "F16", [2], struct.pack("<2e", 1.5, -2)),
    ("bf", "BF16", [1], b"\xc0\x3f"),
    ("i8", "I8", [3], struct.pack("<3b", 1, -2, 3)),
    ("i16", "I16", [2], struct.pack("<2h", -300, 4)),
    ("i32", "I32", [1, 2], struct.pack("<2i", -70000, 5)),
    ("i64", "I64", [1], struct.pack("<q", -2 ** 40)),
    ("u8", "U8", [2], b"\x00\xff"),
    ("u16", "U16", [1], struct.pack("<H", 65535)),
    ("u32", "U32", [1], struct.pack("<I", 2 ** 32 - 1)),
    ("u64", "U64", [1], struct.pack("<Q", 2 ** 63)),
    ("b", "BOOL", [3], b"\x00\x01\x07"),
    ("empty", "F32", [0, 4], b""),
    ("\u00fc \"\\/\n\U0001d11e", "U8", [1], b"\x09"),
]


def write():
    header, data = {"__metadata__": {"format": "pt", "of": "\u00fc"}}, b""
    place = {}
    for name, dtype, shape, raw in sorted(TENSORS, key=lambda t: (-SIZES[t[1]], t[0])):
        place[name] = [len(data), len(data) + len(raw)]
        data += raw
    for name, dtype, shape, raw in TENSORS:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": place[name]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    whole = (struct.pack("<Q", len(text)) + text + data).hex()
    print("/* Written by tests/safetensors.py: a .safetensors file with every dtype. */")
    print("static const char safetensors_sample[] =")
    lines = [f'    "{whole[i:i + 96]}"' for i in range(0, len(whole), 96)]
    print("\n".join(lines) + ";")


def once(pairs):
    assert len({k for k, _ in pairs}) == len(pairs), "a key twice"
    return dict(pairs)


def read(path):
    raw = open(path, "rb").read()
    n, = struct.unpack("<Q", raw[:8])
    assert n % 8 == 0 and raw[8:9] == b"{", "header not padded"
    header, data = json.loads(raw[8:8 + n].decode(), object_pairs_hook=once), raw[8 + n:]
    assert header.pop("__metadata__") == {"format": "pt"}
    end = 0
    for at, to, name in sorted((*t["data_offsets"], name) for name, t in header.items()):
        assert at == end, f"a gap before {name}"
        end = to
    assert end == len(data), "bytes too many"
    for name, t in header.items():
        at, to = t["data_offsets"]
        count = 1
        for d in t["shape"]:
            count *= d
        assert to - at == count * SIZES[t["dtype"]] and at % SIZES[t["dtype"]] == 0, name
        print(ascii(name)[1:-1], t["dtype"], t["shape"], data[at:to].hex())


if __name__ == "__main__":
    write() if sys.argv[1] == "write" else read(sys.argv[2])
