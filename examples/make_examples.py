#!/usr/bin/env python3
"""Writes the example models, the same bytes each time. No module beyond Python's own.

    examples/make_examples.py           writes the .onnx files beside this script
    examples/make_examples.py --check   compares them; exit code 1 when one differs

What each model is, and why, is said at its function. Opset 13, IR 8. Scalars are
Constant nodes and weights initializers, as exporters write them. Field numbers are
those of onnx.proto.
"""
import os
import struct
import sys

FLOAT = 1                                   # TensorProto.DataType
ATTR_INT, ATTR_TENSOR, ATTR_INTS = 2, 4, 7  # AttributeProto.AttributeType


# ---- protobuf: a message is a byte string; a field is tag, then varint or bytes ------
def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, *parts):
    body = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


# ---- ONNX ------------------------------------------------------------------------------
def tensor(field, name, dims, values):
    raw = struct.pack(f"<{len(values)}f", *values)
    return message(field, *(number(1, d) for d in dims), number(2, FLOAT), message(8, name), message(9, raw))


def attribute(name, kind, *value):
    return message(5, message(1, name), *value, number(20, kind))


def node(op, name, inputs, output, *attributes):
    return message(1, *(message(1, i) for i in inputs), message(2, output), message(3, name), message(4, op),
                   *attributes)


def constant(name, value):
    return node("Constant", f"Constant_{name}", [], name, attribute("value", ATTR_TENSOR, tensor(5, "", [], [value])))


def reduce_mean(name, source, output):
    return node("ReduceMean", name, [source], output, attribute("axes", ATTR_INTS, number(8, -1)),
                attribute("keepdims", ATTR_INT, number(3, 1)))


def value_info(field, name, shape):
    dims = message(2, *(message(1, number(1, d)) for d in shape))
    return message(field, message(1, name), message(2, message(1, number(1, FLOAT), dims)))


def model(name, shape, nodes, inputs, weights=()):
    graph = message(7, *nodes, message(2, name), *weights, *(value_info(11, i, shape) for i in inputs),
                    value_info(12, "y", shape))
    return number(1, 8) + message(2, "fusetune examples") + graph + message(8, number(2, 13))


# ---- the models --------------------------------------------------------------------------
def chain():
    """y = sigmoid(1.5 tanh(x / 2 + 0.1)) with the sigmoid in its parts: 8 pointwise
    operators on 16 Mi floats. One input, one output: a kernel per operator moves 16
    times the tensor through memory, one kernel for all moves it twice. |1.5 tanh| <= 1.5,
    so every value stays finite whatever x is."""
    return model("chain", [4096, 4096], [
        constant("half", 0.5), constant("tenth", 0.1), constant("gain", 1.5), constant("one", 1.0),
        node("Mul", "Mul_0", ["x", "half"], "t0"),
        node("Add", "Add_1", ["t0", "tenth"], "t1"),
        node("Tanh", "Tanh_2", ["t1"], "t2"),
        node("Mul", "Mul_3", ["t2", "gain"], "t3"),
        node("Neg", "Neg_4", ["t3"], "t4"),
        node("Exp", "Exp_5", ["t4"], "t5"),
        node("Add", "Add_6", ["t5", "one"], "t6"),
        node("Reciprocal", "Reciprocal_7", ["t6"], "y"),
    ], ["x"])


def bias_gelu_residual():
    """The inner activation of a BERT-large feed-forward block, batch 8 x 512 tokens x
    4096: bias, GELU as PyTorch's exporter decomposes it, and a residual of that size.
    7 operators, 16 Mi elements; the biased value is read twice inside GELU."""
    bias = [((i * 37) % 101 - 50) / 128 for i in range(4096)]
    return model("bias_gelu_residual", [8, 512, 4096], [
        node("Add", "Add_0", ["x", "bias"], "b"),
        constant("sqrt2", 1.4142135381698608),
        node("Div", "Div_1", ["b", "sqrt2"], "d"),
        node("Erf", "Erf_2", ["d"], "e"),
        constant("one", 1.0),
        node("Add", "Add_3", ["e", "one"], "a"),
        node("Mul", "Mul_4", ["b", "a"], "m"),
        constant("half", 0.5),
        node("Mul", "Mul_5", ["m", "half"], "g"),
        node("Add", "Add_6", ["g", "residual"], "y"),
    ], ["x", "residual"], [tensor(5, "bias", [4096], bias)])


def layer_norm_residual():
    """Residual add, then layer norm over rows of 1024, decomposed as exporters did
    before opset 17 had the operator: 10 operators, two of them row reductions."""
    gamma = [1 + ((i * 29) % 61 - 30) / 256 for i in range(1024)]
    beta = [((i * 23) % 59 - 29) / 128 for i in range(1024)]
    return model("layer_norm_residual", [4096, 1024], [
        node("Add", "Add_0", ["x", "residual"], "s"),
        reduce_mean("ReduceMean_1", "s", "mean"),
        node("Sub", "Sub_2", ["s", "mean"], "d"),
        constant("two", 2.0),
        node("Pow", "Pow_3", ["d", "two"], "sq"),
        reduce_mean("ReduceMean_4", "sq", "var"),
        constant("eps", 1e-5),
        node("Add", "Add_5", ["var", "eps"], "ve"),
        node("Sqrt", "Sqrt_6", ["ve"], "sd"),
        node("Div", "Div_7", ["d", "sd"], "n"),
        node("Mul", "Mul_8", ["n", "gamma"], "ng"),
        node("Add", "Add_9", ["ng", "beta"], "y"),
    ], ["x", "residual"], [tensor(5, "gamma", [1024], gamma), tensor(5, "beta", [1024], beta)])


def main():
    here, differ = os.path.dirname(os.path.abspath(__file__)), 0
    for make in (chain, bias_gelu_residual, layer_norm_residual):
        path, data = os.path.join(here, make.__name__ + ".onnx"), make()
        if "--check" not in sys.argv:
            with open(path, "wb") as f:
                f.write(data)
            continue
        with open(path, "rb") as f:
            if f.read() != data:
                print(f"examples: {make.__name__}.onnx is not what make_examples.py writes")
                differ = 1
    if "--check" in sys.argv and not differ:
        print("examples: ok")
    return differ


if __name__ == "__main__":
    sys.exit(main())
