#!/usr/bin/env python3
"""Writes the example models, the same bytes each time. No module beyond Python's own.

    examples/make_examples.py           writes the .onnx files beside this script
    examples/make_examples.py --check   compares them; exit code 1 when one differs

What each model is, and why, is said at its function. Opset 13 unless it says so, IR 8.
Scalars are Constant nodes. Small weights are initializers, or short seeded ones that
Tile and Slice stretch (an importer folds them); matrices of a layer are graph inputs
named w_..., so that no file carries megabytes. Field numbers are those of onnx.proto.
"""
import os
import struct
import sys

FLOAT, INT64 = 1, 7                         # TensorProto.DataType
ATTR_INT, ATTR_TENSOR, ATTR_INTS = 2, 4, 7  # AttributeProto.AttributeType
SEEDS = 251                                 # prime: no row of a weight equals the next
LOWEST = -3.4028234663852886e38             # of a float: what exporters mask with


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


def file_of(graph, opset):
    return number(1, 8) + message(2, "fusetune examples") + graph + message(8, number(2, opset))


def model(name, shape, nodes, inputs, weights=()):
    return file_of(message(7, *nodes, message(2, name), *weights, *(value_info(11, i, shape) for i in inputs),
                           value_info(12, "y", shape)), 13)


class Graph:
    """Nodes in order; each call adds some and returns the name of what they give."""

    def __init__(self, name, opset=13):
        self.name, self.opset, self.nodes, self.inputs = name, opset, [], []
        self.state = len(name)

    def input(self, name, *shape):
        self.inputs.append(value_info(11, name, shape))
        return name

    def op(self, op, *inputs, **attributes):
        output = f"{op}_{len(self.nodes)}"
        self.nodes.append(node(op, f"node_{output}", inputs, output, *map(self.attribute, *zip(*attributes.items()))
                               if attributes else ()))
        return output

    @staticmethod
    def attribute(name, value):
        if isinstance(value, bytes):
            return attribute(name, ATTR_TENSOR, value)
        if isinstance(value, int):
            return attribute(name, ATTR_INT, number(3, value))
        return attribute(name, ATTR_INTS, *(number(8, v) for v in value))

    def scalar(self, value):
        return self.op("Constant", value=tensor(5, "", [], [value]))

    def ints(self, *values):
        raw = struct.pack(f"<{len(values)}q", *values)
        return self.op("Constant", value=message(5, number(1, len(values)), number(2, INT64), message(9, raw)))

    def draw(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        return self.state >> 56

    def weight(self, centre, spread, *shape):
        """SEEDS values of centre +- spread, multiples of spread / 128, over and over."""
        count = 1
        for d in shape:
            count *= d
        few = min(count, SEEDS)
        values = [centre + (self.draw() - 128) * spread / 128 for _ in range(few)]
        out = self.op("Constant", value=tensor(5, "", [few], values))
        if count > few:
            out = self.op("Tile", out, self.ints(-(-count // few)))
            out = self.op("Slice", out, self.ints(0), self.ints(count))
        return out if len(shape) == 1 else self.reshape(out, *shape)

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.ints(*shape))

    def linear(self, x, weight, bias=None):
        """As PyTorch's exporter writes it for rank 3: the bias is Add's first operand."""
        product = self.op("MatMul", x, weight)
        return self.op("Add", bias, product) if bias else product

    def layer_norm(self, x, width):
        mean = self.op("ReduceMean", x, axes=[-1], keepdims=1)
        centred = self.op("Sub", x, mean)
        square = self.op("Pow", centred, self.scalar(2.0))
        variance = self.op("ReduceMean", square, axes=[-1], keepdims=1)
        deviation = self.op("Sqrt", self.op("Add", variance, self.scalar(1e-12)))
        scaled = self.op("Mul", self.op("Div", centred, deviation), self.weight(1, 0.25, width))
        return self.op("Add", scaled, self.weight(0, 0.5, width))

    def rms_norm(self, x, width):
        square = self.op("Pow", x, self.scalar(2.0))
        mean = self.op("ReduceMean", square, axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.scalar(1e-5)))
        scaled = self.op("Mul", x, self.op("Div", self.scalar(1.0), root))
        return self.op("Mul", self.weight(1, 0.25, width), scaled)

    def gelu(self, x):
        bell = self.op("Add", self.op("Erf", self.op("Div", x, self.scalar(1.4142135381698608))), self.scalar(1.0))
        return self.op("Mul", self.op("Mul", x, bell), self.scalar(0.5))

    def heads(self, x, sequence, count, width):
        return self.op("Transpose", self.reshape(x, 1, sequence, count, width), perm=[0, 2, 1, 3])

    def join_heads(self, x, sequence, hidden):
        return self.reshape(self.op("Transpose", x, perm=[0, 2, 1, 3]), 1, sequence, hidden)

    def part(self, x, first, end):
        return self.op("Slice", x, self.ints(first), self.ints(end), self.ints(-1))

    def file(self, y, *shape):
        """The model, whose only output |y|, of |shape|, is renamed to y."""
        nodes = [*self.nodes, node("Identity", "node_y", [y], "y")]
        return file_of(message(7, *nodes, message(2, self.name), *self.inputs, value_info(12, "y", shape)), self.opset)


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


def softmax():
    """Softmax over rows of 1024 as the one operator that opset 13 has for it."""
    g = Graph("softmax")
    return g.file(g.op("Softmax", g.input("x", 4096, 1024), axis=-1), 4096, 1024)


def softmax_decomposed():
    """The same in its parts: two row reductions, three pointwise operators."""
    g = Graph("softmax_decomposed")
    x = g.input("x", 4096, 1024)
    shifted = g.op("Sub", x, g.op("ReduceMax", x, axes=[-1], keepdims=1))
    power = g.op("Exp", shifted)
    return g.file(g.op("Div", power, g.op("ReduceSum", power, g.ints(-1), keepdims=1)), 4096, 1024)


def rms_norm():
    """RMS norm over rows of 1024, decomposed as it always is: no opset up to 22 has it."""
    g = Graph("rms_norm")
    return g.file(g.rms_norm(g.input("x", 4096, 1024), 1024), 4096, 1024)


def mlp_residual():
    """x + W2 relu(W1 x + b1) + b2 on 128 rows, 1024 to 2048 and back: two Gemm with
    transB, as PyTorch's exporter writes nn.Linear of rank 2."""
    g = Graph("mlp_residual")
    x = g.input("x", 128, 1024)
    wide = g.op("Gemm", x, g.input("w_1", 2048, 1024), g.weight(0, 0.5, 2048), transB=1)
    back = g.op("Gemm", g.op("Relu", wide), g.input("w_2", 1024, 2048), g.weight(0, 0.5, 1024), transB=1)
    return g.file(g.op("Add", x, back), 128, 1024)


def resnet_bottleneck():
    """ResNet-50's second bottleneck: 56 x 56, 256-64-64-256 channels, batch norm folded
    into filters and bias, as exporters do for inference."""
    g = Graph("resnet_bottleneck")
    x = y = g.input("x", 1, 256, 56, 56)
    for out, into, size in ((64, 256, 1), (64, 64, 3), (256, 64, 1)):
        filters = g.weight(0, (into * size * size) ** -0.5, out, into, size, size)
        y = g.op("Conv", y, filters, g.weight(0, 0.5, out), kernel_shape=[size, size], pads=[size // 2] * 4,
                 strides=[1, 1], dilations=[1, 1], group=1)
        if out == 64:
            y = g.op("Relu", y)
    return g.file(g.op("Relu", g.op("Add", y, x)), 1, 256, 56, 56)


def bert_layer():
    """BERT-base's encoder layer at 128 tokens, opset 14: 12 heads of 64, additive mask,
    feed-forward 3072; layer norm and GELU in their parts."""
    g, tokens, hidden, wide = Graph("bert_layer", 14), 128, 768, 3072
    x, mask = g.input("x", 1, tokens, hidden), g.input("mask", 1, 1, 1, tokens)

    def project(name, source, inner, outer):
        return g.linear(source, g.input(name, inner, outer), g.weight(0, 0.5, outer))

    q = g.heads(project("w_q", x, hidden, hidden), tokens, 12, 64)
    k = g.reshape(project("w_k", x, hidden, hidden), 1, tokens, 12, 64)
    v = g.heads(project("w_v", x, hidden, hidden), tokens, 12, 64)
    scores = g.op("Div", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 3, 1])), g.scalar(8.0))
    attention = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
    joined = g.join_heads(g.op("MatMul", attention, v), tokens, hidden)
    x = g.layer_norm(g.op("Add", project("w_o", joined, hidden, hidden), x), hidden)
    inner = g.gelu(project("w_up", x, hidden, wide))
    y = g.layer_norm(g.op("Add", project("w_down", inner, wide, hidden), x), hidden)
    return g.file(y, 1, tokens, hidden)


def llama_layer():
    """A LLaMA-style decoder layer at 128 tokens, opset 17: hidden 512, 8 query heads of 64
    on 2 key heads, rotary positions by halves, causal mask, SwiGLU of 1376."""
    g, tokens, hidden, wide, width = Graph("llama_layer", 17), 128, 512, 1376, 64
    x = g.input("x", 1, tokens, hidden)
    frequency = tensor(5, "", [1, width // 2], [10000 ** (-2 * i / width) for i in range(width // 2)])
    places = tensor(5, "", [tokens, 1], list(range(tokens)))
    half = g.op("Mul", g.op("Constant", value=places), g.op("Constant", value=frequency))
    angle = g.reshape(g.op("Concat", half, half, axis=-1), 1, 1, tokens, width)
    cos, sin = g.op("Cos", angle), g.op("Sin", angle)

    def rotate(a):
        turned = g.op("Concat", g.op("Neg", g.part(a, width // 2, width)), g.part(a, 0, width // 2), axis=-1)
        return g.op("Add", g.op("Mul", a, cos), g.op("Mul", turned, sin))

    def spread(a):  # one key head for each query head
        a = g.op("Expand", g.op("Unsqueeze", a, g.ints(2)), g.ints(1, 2, 4, tokens, width))
        return g.reshape(a, 1, 8, tokens, width)

    normed = g.rms_norm(x, hidden)
    q = rotate(g.heads(g.linear(normed, g.input("w_q", hidden, hidden)), tokens, 8, width))
    k = spread(rotate(g.heads(g.linear(normed, g.input("w_k", hidden, 2 * width)), tokens, 2, width)))
    v = spread(g.heads(g.linear(normed, g.input("w_v", hidden, 2 * width)), tokens, 2, width))
    lowest = tensor(5, "", [1], [LOWEST])
    mask = g.op("Trilu", g.op("ConstantOfShape", g.ints(1, 1, tokens, tokens), value=lowest), g.op("Constant", value=message(5, number(2, INT64), message(9, struct.pack("<q", 1)))), upper=1)
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.scalar(0.125))
    attention = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
    joined = g.join_heads(g.op("MatMul", attention, v), tokens, hidden)
    x = g.op("Add", x, g.linear(joined, g.input("w_o", hidden, hidden)))
    normed = g.rms_norm(x, hidden)
    gate = g.linear(normed, g.input("w_gate", hidden, wide))
    up = g.linear(normed, g.input("w_up", hidden, wide))
    inner = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)
    y = g.op("Add", x, g.linear(inner, g.input("w_down", wide, hidden)))
    return g.file(y, 1, tokens, hidden)


MODELS = (chain, bias_gelu_residual, layer_norm_residual, softmax, softmax_decomposed, rms_norm, mlp_residual,
          resnet_bottleneck, bert_layer, llama_layer)


def main():
    here, differ = os.path.dirname(os.path.abspath(__file__)), 0
    for make in MODELS:
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
