#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/graph_json and tests/fuzz/corpus/npy: small files, one idea
each, for the fuzzers to start from. Equal cases give equal bytes."""
import json
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
X = {"name": "x", "dtype": "f32", "shape": ["N", 4]}


def node(op, inputs, outputs, **attributes):
    return {"op": op, "inputs": inputs, "outputs": outputs, "attributes": attributes}


def constant(name, dtype, shape, **data):
    return {"name": name, "dtype": dtype, "shape": shape, "data": data}


def model(nodes, constants=(), inputs=(X,), outputs=("y",), opset=21, **more):
    return {"format": "fusetune-graph/1", "name": "m", "opset": opset, "dims": ["N"], "inputs": list(inputs),
            "outputs": list(outputs), "constants": list(constants), "nodes": nodes, **more}


MODELS = {
    "relu": model([node("Relu", ["x"], ["y"])]),
    "softmax": model([node("Softmax", ["x"], ["y"], axis=-1)]),
    "clip": model([node("Clip", ["x", "", "six"], ["y"])], [constant("six", "f32", [], values=[6.0])]),
    "seed": model([node("Add", ["x", "w"], ["y"])], [constant("w", "f32", [4], seed=7)]),
    "file": model([node("Add", ["x", "w"], ["y"])], [constant("w", "f32", [4], file="w.bin", offset=0, bytes=16)]),
    "base64": model([node("Mul", ["x", "w"], ["y"])], [constant("w", "f32", [1], base64="AADAQA==")]),
    "words": model([node("Max", ["x", "w"], ["y"])], [constant("w", "f32", [3], values=["nan", "inf", "-inf"])]),
    "types": model([node("Elu", ["x"], ["t"], alpha={"float": 1}), node("Transpose", ["t"], ["y"], perm=[1, 0])]),
    "tensor": model([node("Constant", [], ["c"], value={"dtype": "i64", "shape": [1], "data": {"values": [0]}}),
                     node("Unsqueeze", ["x", "c"], ["y"])]),
    "domain": model([{**node("Gelu", ["x"], ["y"]), "domain": "com.microsoft"}], domains={"com.microsoft": 1}),
    "branch": model([node("If", ["c"], ["y"], then_branch={"graph": {"outputs": ["a"], "nodes": [node("Relu", ["x"], ["a"])]}},
                          else_branch={"graph": {"outputs": ["b"], "nodes": [node("Neg", ["x"], ["b"])]}})],
                    [constant("c", "bool", [], values=[True])]),
    "cycle": model([node("Relu", ["y"], ["a"]), node("Relu", ["a"], ["y"])]),
    "twice": model([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])]),
}
ARRAYS = {
    "matrix": ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", struct.pack("<6f", *range(6))),
    "scalar": ("{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n", struct.pack("<q", 7)),
    "bools": ("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n", b"\0\1\0"),
    "fortran": ("{'descr': '<f8', 'fortran_order': True, 'shape': (1, 1), }\n", struct.pack("<d", 1)),
    "big": ("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }\n", struct.pack(">f", 1)),
    "empty": ("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9), }\n", b""),
}


def write(folder, name, data):
    os.makedirs(f"{HERE}/corpus/{folder}", exist_ok=True)
    with open(f"{HERE}/corpus/{folder}/{name}", "wb") as f:
        f.write(data)


for name, body in MODELS.items():
    write("graph_json", f"{name}.json", json.dumps(body, separators=(",", ":")).encode())
for name, (header, data) in ARRAYS.items():
    write("npy", f"{name}.npy", b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + data)
