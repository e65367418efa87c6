#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/onnx: small models, one idea each, for the fuzzer to start
from. Needs nothing but Python: the wire format is a dozen lines. Run it again after
adding a case; equal cases give equal bytes."""
import os
import struct

FLOAT, INT32, INT64, STRING, BOOL, DOUBLE = 1, 6, 7, 8, 9, 11


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while True:
        byte, n = n & 127, n >> 7
        out += bytes([byte | (128 if n else 0)])
        if not n:
            return out


def field(number, value):
    """An int is a varint, a float is fixed32, text and bytes are length-delimited."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


class Graph(bytes):
    """A GraphProto, as an attribute."""


def attribute(name, value):
    out = field(1, name)
    if isinstance(value, Graph):
        return out + field(6, value) + field(20, 5)
    if isinstance(value, float):
        return out + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return out + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return out + field(4, value) + field(20, 3)
    if isinstance(value, bytes):
        return out + field(5, value) + field(20, 4)
    if value and isinstance(value[0], float):
        return out + b"".join(field(7, v) for v in value) + field(20, 6)
    return out + b"".join(field(8, v) for v in value) + field(20, 7)


def node(op, inputs, outputs, domain="", **attributes):
    return (b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs)
            + field(3, "n_" + outputs[0]) + field(4, op)
            + b"".join(field(5, attribute(k, v)) for k, v in attributes.items())
            + (field(7, domain) if domain else b""))


def tensor(name, dtype, dims, raw=b"", typed=b""):
    return (b"".join(field(1, d) for d in dims) + field(2, dtype) + typed
            + field(8, name) + (field(9, raw) if raw else b""))


def floats(name, dims, values):
    return tensor(name, FLOAT, dims, struct.pack("<%df" % len(values), *values))


def ints(name, values, dims=None):
    return tensor(name, INT64, [len(values)] if dims is None else dims,
                  struct.pack("<%dq" % len(values), *values))


def value(name, dtype=FLOAT, dims=("N", 3)):
    shape = b"".join(field(1, b"" if d is None else field(1, d) if isinstance(d, int)
                           else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, shape)))


def model(nodes, inputs=None, outputs=("y",), weights=(), opset=13, ir=8):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g")
    graph += b"".join(field(5, w) for w in weights)
    graph += b"".join(field(11, i) for i in (inputs or [value("x")]))
    graph += b"".join(field(12, field(1, o)) for o in outputs)
    return field(1, ir) + field(7, graph) + field(8, field(2, opset))


def chain(*ops, **options):
    nodes, last = [], "x"
    for i, op in enumerate(ops):
        out = "y" if i == len(ops) - 1 else "t%d" % i
        nodes.append(node(op, [last], [out]))
        last = out
    return model(nodes, **options)


def external(location, offset):
    entries = (("location", location), ("offset", offset), ("length", "12"))
    return tensor("w", FLOAT, [3], typed=field(14, 1) + b"".join(
        field(13, field(1, k) + field(2, v)) for k, v in entries))


def branch(*nodes):
    return Graph(b"".join(field(1, n) for n in nodes) + field(12, field(1, "r")))


def one(op, operands, dims, weights=(), opset=13, outputs=("y",), **attributes):
    """One node on x of |dims|."""
    return model([node(op, operands, list(outputs), **attributes)], [value("x", dims=dims)],
                 weights=weights, opset=opset, outputs=tuple(o for o in outputs if o))


IMAGE = (1, 2, 4, 4)
w22 = floats("w", [2, 2], [1.0, 2.0, 3.0, 4.0])
pair = floats("p", [2], [1.0, 2.0])
kernel = floats("k", [2, 1, 3, 3], [float(i) for i in range(18)])
yes = tensor("yes", BOOL, [], b"\1")
two = floats("two", [], [2.0])
CASES = {
    "unary": chain("Abs", "Sqrt", "Exp", "Log", "Erf", "Tanh", "Sigmoid", "Relu"),
    "rounding": chain("Floor", "Ceil", "Round", "Sign", "Neg", "Reciprocal", "Sin", "Cos"),
    "activations": chain("LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish",
                         "Softplus", "Softsign", "ThresholdedRelu", "Shrink", opset=18),
    "gelu": model([node("Gelu", ["x"], ["y"], approximate="tanh")], opset=20),
    "mish_swish": chain("Mish", "Swish", opset=24),
    "pow": model([node("Pow", ["x", "two"], ["y"])], weights=[two]),
    "pow_legacy": model([node("Pow", ["x", "two"], ["y"], broadcast=1)], weights=[two],
                        opset=6),
    "add_axis": model([node("Add", ["x", "w"], ["y"], broadcast=1, axis=0)], opset=6,
                      weights=[floats("w", [3], [1.0, 2.0, 3.0])], ir=3),
    "logic": model([node("Less", ["x", "two"], ["a"]), node("IsNaN", ["x"], ["b"]),
                    node("Or", ["a", "b"], ["c"]), node("Xor", ["a", "c"], ["d"]),
                    node("Not", ["d"], ["e"]), node("Where", ["e", "x", "two"], ["y"])],
                   weights=[two]),
    "clip_attrs": model([node("Clip", ["x"], ["y"], min=-1.0, max=1.0)], opset=6),
    "clip_inputs": model([node("Clip", ["x", "", "two"], ["y"])], weights=[two]),
    "variadic": model([node("Sum", ["x", "two", "x"], ["a"]), node("Mean", ["a", "x"], ["b"]),
                       node("Max", ["b", "x"], ["c"]), node("Min", ["c"], ["y"])],
                      weights=[two]),
    "layer_norm": model(
        [node("ReduceMean", ["x"], ["m"], axes=[-1]), node("Sub", ["x", "m"], ["d"]),
         node("Mul", ["d", "d"], ["p"]), node("ReduceMean", ["p"], ["v"], axes=[-1]),
         node("Add", ["v", "two"], ["e"]), node("Sqrt", ["e"], ["s"]),
         node("Div", ["d", "s"], ["y"])], weights=[two]),
    "layer_norm_17": model([node("LayerNormalization", ["x", "w", "w"], ["y", "m", "i"],
                                 epsilon=1e-6, axis=-1)], opset=17,
                           weights=[floats("w", [3], [1.0, 2.0, 3.0])]),
    "rms_norm": model([node("RMSNormalization", ["x", "w"], ["y"])], opset=23,
                      weights=[floats("w", [3], [1.0, 2.0, 3.0])]),
    "softmax_11": model([node("Softmax", ["x"], ["y"], axis=0)], opset=11),
    "softmax_13": chain("Softmax", "LogSoftmax"),
    "reduce_attr": model([node("ReduceMax", ["x"], ["a"], axes=[0, -1], keepdims=0),
                          node("ReduceL2", ["x"], ["b"]), node("Add", ["a", "b"], ["y"])]),
    "reduce_input": model([node("ReduceSum", ["x", "axes"], ["y"], noop_with_empty_axes=1)],
                          weights=[ints("axes", [1])]),
    "reduce_more": chain("ReduceProd", "ReduceMin", "ReduceLogSumExp", "ReduceSumSquare",
                         "ReduceL1", "ReduceLogSum"),
    "reshape": model([node("Reshape", ["x", "shape"], ["a"]), node("Flatten", ["a"], ["b"]),
                      node("Transpose", ["b"], ["y"], perm=[1, 0])],
                     weights=[ints("shape", [0, -1, 1])]),
    "squeeze": model([node("Unsqueeze", ["x", "axes"], ["a"]),
                      node("Squeeze", ["a", "axes"], ["y"])], weights=[ints("axes", [-1, 0])]),
    "squeeze_attr": model([node("Unsqueeze", ["x"], ["a"], axes=[0]),
                           node("Squeeze", ["a"], ["y"], axes=[0])], opset=11),
    "shape_arithmetic": model(
        [node("Shape", ["x"], ["s"], start=0, end=1), node("Size", ["x"], ["n"]),
         node("Div", ["n", "s"], ["q"]), node("Cast", ["q"], ["c"], to=INT64),
         node("ConstantOfShape", ["c"], ["y"], value=tensor("", FLOAT, [1], b"\0\0\x80?"))],
        opset=15),
    "expand": model([node("Expand", ["x", "shape"], ["y"])], weights=[ints("shape", [2, 1, 3])]),
    "constants": model(
        [node("Constant", [], ["a"], value_float=1.5), node("Constant", [], ["b"], value_int=3),
         node("Constant", [], ["c"], value_floats=[1.0, 2.0, 3.0]),
         node("Constant", [], ["d"], value_ints=[1, 3]),
         node("Constant", [], ["e"], value=floats("", [3], [1.0, 2.0, 3.0])),
         node("Reshape", ["c", "d"], ["f"]), node("Mul", ["a", "f"], ["g"]),
         node("Add", ["g", "e"], ["h"]), node("CastLike", ["b", "a"], ["i"]),
         node("Sum", ["x", "h", "i"], ["y"])], opset=15),
    "typed_data": model(
        [node("Cast", ["d"], ["e"], to=FLOAT), node("Where", ["b", "f", "e"], ["g"]),
         node("Cast", ["i"], ["j"], to=FLOAT), node("Sum", ["x", "g", "j"], ["y"])],
        weights=[tensor("f", FLOAT, [3], typed=field(4, struct.pack("<3f", 1, 2, 3))),
                 tensor("d", DOUBLE, [], typed=field(10, struct.pack("<d", 1e-5))),
                 tensor("b", BOOL, [3], typed=field(5, bytes([1, 0, 1]))),
                 tensor("i", INT32, [1], typed=field(5, varint(-7)))]),
    "dropout": model([node("Dropout", ["x"], ["a", "mask"]), node("Identity", ["a"], ["y"])],
                     outputs=("y", "mask")),
    "dims": model([node("Add", ["x", "z"], ["y"])],
                  [value("x", dims=("N", None, 1)), value("z", dims=("N", "M", 0))]),
    "external": model([node("Add", ["x", "w"], ["y"])], weights=[external("../w.bin", "4")]),
    "unsupported": model([node("Foo", ["x"], ["a"], domain="my.domain"),
                          node("MatMul", ["a", "x"], ["y"])]),
    "mat_mul": one("MatMul", ["x", "w"], (3, 1, 2), [w22]),
    "mat_mul_vector": one("MatMul", ["x", "p"], (2, 2), [pair]),
    "gemm": one("Gemm", ["x", "w", "p"], (3, 2), [w22, pair], alpha=2.0, beta=0.5, transB=1),
    "conv": one("Conv", ["x", "k", "p"], IMAGE, [kernel, pair], group=2, pads=[1, 0, 1, 2],
                strides=[2, 1], dilations=[1, 1]),
    "conv_same": one("Conv", ["x", "k"], IMAGE, [kernel], group=2, auto_pad="SAME_LOWER"),
    "max_pool": one("MaxPool", ["x"], IMAGE, kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1,
                    pads=[1, 1, 1, 1]),
    "average_pool": one("AveragePool", ["x"], IMAGE, opset=19, kernel_shape=[3, 3],
                        pads=[1, 1, 1, 1], count_include_pad=1, ceil_mode=1),
    "lp_pool": one("LpPool", ["x"], IMAGE, opset=18, kernel_shape=[2, 2], p=3),
    "global_pools": chain("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool",
                          inputs=[value("x", dims=IMAGE)]),
    "lrn": one("LRN", ["x"], IMAGE, size=3, alpha=0.1),
    "batch_norm": one("BatchNormalization", ["x", "p", "p", "p", "p"], IMAGE, [pair]),
    "instance_norm": one("InstanceNormalization", ["x", "p", "p"], IMAGE, [pair]),
    "group_norm_18": one("GroupNormalization", ["x", "p", "p"], IMAGE, [pair], opset=18,
                         num_groups=2),
    "group_norm_21": one("GroupNormalization", ["x", "p", "p"], IMAGE, [pair], opset=21,
                         num_groups=1),
    "lp_norm": one("LpNormalization", ["x"], (2, 3), p=1, axis=0),
    "mvn": one("MeanVarianceNormalization", ["x"], IMAGE),
    "gather": one("Gather", ["x", "i"], (3, 3), [ints("i", [-1, 0, 0, 2], [2, 2])], axis=1),
    "gather_one": one("Gather", ["x", "i"], (3, 3), [ints("i", [-1], [])], axis=1),
    "gather_elements": one("GatherElements", ["x", "i"], (2, 3), [ints("i", [1, 0, -1], [1, 3])]),
    "gather_nd": one("GatherND", ["x", "i"], (2, 2, 3), [ints("i", [1, -1], [2, 1])],
                     batch_dims=1),
    "slice": one("Slice", ["x", "s", "e", "", "t"], (3, 4),
                 [ints("s", [0, -1]), ints("e", [(1 << 63) - 1, -(1 << 63)]), ints("t", [2, -1])]),
    "slice_attr": one("Slice", ["x"], (3, 4), opset=9, starts=[1], ends=[-1], axes=[1]),
    "concat": one("Concat", ["x", "w", "x"], ("N", 2), [w22], axis=-2),
    "split": model([node("Split", ["x", "s"], ["a", "y"], axis=1)], weights=[ints("s", [1, 2])]),
    "split_18": model([node("Split", ["x"], ["a", "y"], axis=1, num_outputs=2)], opset=18),
    "pad": one("Pad", ["x", "n", "two", "a"], (3, 4), [ints("n", [1, -1]), two, ints("a", [-1])],
               opset=18),
    "pad_reflect": one("Pad", ["x"], (3, 4), opset=10, mode="reflect", pads=[2, 1, 0, 3]),
    "pad_wrap": one("Pad", ["x", "n"], (3, 4), [ints("n", [1, 0, 2, 9])], opset=19, mode="wrap"),
    "tile": one("Tile", ["x", "r"], (1, 3), [ints("r", [3, 2])]),
    "resize_nearest": one("Resize", ["x", "", "s"], (2, 3), [floats("s", [2], [2.0, 0.5])],
                          nearest_mode="floor", coordinate_transformation_mode="asymmetric"),
    "resize_linear": one("Resize", ["x", "", "", "s"], (2, 3), [ints("s", [5])], opset=19,
                         mode="linear", axes=[-1], keep_aspect_ratio_policy="not_larger"),
    "resize_cubic": one("Resize", ["x", "", "", "s"], (2, 3), [ints("s", [3, 7])],
                        mode="cubic", exclude_outside=1),
    "resize_crop": one("Resize", ["x", "r", "", "s"], (4,),
                       [floats("r", [2], [0.2, 1.4]), ints("s", [3])], mode="linear",
                       coordinate_transformation_mode="tf_crop_and_resize"),
    "upsample": one("Upsample", ["x"], (2, 3), opset=7, mode="linear", scales=[2.0, 1.5]),
    "arg": model([node("ArgMax", ["x"], ["a"], axis=1, select_last_index=1),
                  node("ArgMin", ["x"], ["b"], keepdims=0), node("Gather", ["x", "b"], ["c"]),
                  node("Identity", ["c"], ["y"])], outputs=("y", "a")),
    "hardmax": one("Hardmax", ["x"], (2, 3), opset=11),
    "cum_sum": one("CumSum", ["x", "a"], (2, 3), [ints("a", [-1], [])], exclusive=1, reverse=1),
    "trilu": one("Trilu", ["x", "k"], (2, 3), [ints("k", [-1], [])], opset=14, upper=0),
    "mod": model([node("Cast", ["x"], ["i"], to=INT64), node("Mod", ["i", "t"], ["m"]),
                  node("Mod", ["x", "two"], ["f"], fmod=1), node("Identity", ["f"], ["y"])],
                 outputs=("y", "m"), weights=[ints("t", [-3], []), two]),
    "one_hot": one("OneHot", ["x", "d", "p"], (2,), [ints("d", [3], []), pair], axis=0),
    "generate": model([node("Range", ["a", "b", "a"], ["r"]), node("NonZero", ["r"], ["z"]),
                       node("EyeLike", ["x"], ["e"], k=1), node("Cast", ["z"], ["c"], to=FLOAT),
                       node("ReduceSum", ["c"], ["s"]), node("Sum", ["e", "s", "x"], ["y"])],
                      weights=[ints("a", [1], []), ints("b", [4], [])]),
    "depth_space": model([node("DepthToSpace", ["x"], ["a"], blocksize=2, mode="CRD"),
                          node("SpaceToDepth", ["a"], ["y"], blocksize=2)],
                         [value("x", dims=(1, 4, 2, 2))]),
    "if": model([node("If", ["yes"], ["a"], then_branch=branch(node("Add", ["x", "b"], ["r"])),
                      else_branch=branch(node("LSTM", ["x"], ["r"]))),
                 node("Relu", ["a"], ["y"]), node("Neg", ["x"], ["b"])], weights=[yes]),
    "unsorted": model([node("Relu", ["b"], ["y"]), node("Exp", ["a"], ["b"]),
                       node("Neg", ["x"], ["a"])]),
    "default_shape": model([node("Reshape", ["x", "s"], ["y"])],
                           [value("x"), value("s", INT64, (1,))], weights=[ints("s", [-1])]),
    "subgraph": model([node("If", ["x"], ["y"]) + field(5, field(1, "then_branch")
                       + field(20, 5) + field(6, field(1, node("Relu", ["x"], ["t"]))
                                              + field(12, field(1, "t"))))]),
    "cycle": model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], outputs=("b",)),
    "overridable": model([node("Mul", ["x", "two"], ["y"])], [value("x"), value("two", dims=())],
                         weights=[two]),
    "huge": model([node("Relu", ["x"], ["y"])], [value("x", dims=(1 << 40, 1 << 40))]),
}

if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "onnx")
    os.makedirs(folder, exist_ok=True)
    for name, data in sorted(CASES.items()):
        with open(os.path.join(folder, name + ".onnx"), "wb") as out:
            out.write(data)
    print("%d files, %d bytes" % (len(CASES), sum(map(len, CASES.values()))))
