"""The models of the suite export by XNNPACK, through LiteRT (TensorFlow Lite), on one thread.  Images have their
channels innermost, as LiteRT has them: those of three channels are turned before the clock starts.

A .tflite file is written here from the ONNX file, op by op; LiteRT's own converters need more than the schema."""
import flatbuffers
import numpy
import onnx
from ai_edge_litert import schema_py_generated as lite
from ai_edge_litert.interpreter import Interpreter

from exported import onnx_bytes, predictions
from peer import error, report

OP, RECTIFY = lite.BuiltinOperator, lite.ActivationFunctionType.RELU


def innermost(shape):
    return (shape[0], *shape[2:], shape[1]) if len(shape) == 4 else tuple(shape)


class Writer:
    """A model of one subgraph, as it grows.  Values are indices of tensors."""

    def __init__(self):
        self.buffers, self.tensors, self.codes, self.operators, self.shapes = [lite.BufferT()], [], [], [], []

    def tensor(self, shape, data=None, kind=lite.TensorType.FLOAT32):
        if data is not None:
            self.buffers.append(lite.BufferT(data=numpy.frombuffer(numpy.ascontiguousarray(data).tobytes(), dtype=numpy.uint8)))
        self.tensors.append(lite.TensorT(shape=list(shape), type=kind, name=str(len(self.tensors)),
                                         buffer=len(self.buffers) - 1 if data is not None else 0))
        return len(self.tensors) - 1

    def floats(self, data):
        return self.tensor(data.shape, data.astype(numpy.float32))

    def integers(self, data):
        data = numpy.array(data, dtype=numpy.int32)
        return self.tensor(data.shape, data, lite.TensorType.INT32)

    def shape(self, value):
        return tuple(self.tensors[value].shape)

    def op(self, code, inputs, shape, options=None):
        if code not in self.codes:
            self.codes.append(code)
        kind = getattr(lite.BuiltinOptions, type(options).__name__[:-1]) if options else 0
        self.operators.append(lite.OperatorT(opcodeIndex=self.codes.index(code), inputs=inputs, outputs=[self.tensor(shape)],
                                             builtinOptionsType=kind, builtinOptions=options))
        return len(self.tensors) - 1

    def file(self, src, dst):
        codes = [lite.OperatorCodeT(deprecatedBuiltinCode=min(code, 127), builtinCode=code) for code in self.codes]
        graph = lite.SubGraphT(tensors=self.tensors, inputs=[src], outputs=[dst], operators=self.operators)
        model = lite.ModelT(version=3, operatorCodes=codes, subgraphs=[graph], buffers=self.buffers)
        builder = flatbuffers.Builder(1 << 20)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def padded(w, x, pads):
    """x with zeros around its images."""
    if not any(pads):
        return x
    n, height, width, channels = w.shape(x)
    top, left, bottom, right = pads
    around = w.integers([[0, 0], [top, bottom], [left, right], [0, 0]])
    return w.op(OP.PAD, [x, around], (n, height + top + bottom, width + left + right, channels), lite.PadOptionsT())


def windows(w, x, attributes, taps):
    """Padding, and the shape of what windows of so many taps give, but for the channels."""
    (down, across), pads = attributes.get("strides", (1, 1)), attributes.get("pads", (0, 0, 0, 0))
    assert all(d == 1 for d in attributes.get("dilations", (1, 1)))
    n, height, width, _ = w.shape(x)
    high, wide = (height + pads[0] + pads[2] - taps[0]) // down + 1, (width + pads[1] + pads[3] - taps[1]) // across + 1
    same = down == across == 1 and (high, wide) == (height, width)
    x = x if same else padded(w, x, pads)
    return x, (n, high, wide), {"padding": lite.Padding.SAME if same else lite.Padding.VALID, "strideH": down, "strideW": across}


def conv(w, attributes, x, filters, bias):
    x, shape, options = windows(w, x, attributes, filters.shape[2:])
    bias = w.floats(numpy.zeros(len(filters)) if bias is None else bias)
    if attributes.get("group", 1) == 1:
        return w.op(OP.CONV_2D, [x, w.floats(filters.transpose(0, 2, 3, 1)), bias], (*shape, len(filters)), lite.Conv2DOptionsT(**options))
    assert filters.shape[1] == 1 and len(filters) == attributes["group"]
    filters = w.floats(filters.transpose(1, 2, 3, 0))
    return w.op(OP.DEPTHWISE_CONV_2D, [x, filters, bias], (*shape, attributes["group"]),
                lite.DepthwiseConv2DOptionsT(depthMultiplier=1, **options))


def max_pool(w, attributes, x):
    """Zeros around an image change no maximum after a rectifier, and it is asserted that there is one."""
    taps = attributes["kernel_shape"]
    assert not any(attributes.get("pads", ())) or w.operators[-1].builtinOptions.fusedActivationFunction == RECTIFY
    x, shape, options = windows(w, x, attributes, taps)
    return w.op(OP.MAX_POOL_2D, [x], (*shape, w.shape(x)[3]), lite.Pool2DOptionsT(filterHeight=taps[0], filterWidth=taps[1], **options))


def dense(w, attributes, x, weights, bias, image):
    """image: the shape, without the batch, of what was flattened: its channels were outermost."""
    assert attributes.get("transB") and not attributes.get("transA")
    if image:
        weights = weights.reshape(-1, image[2], *image[:2]).transpose(0, 2, 3, 1).reshape(weights.shape)
    return w.op(OP.FULLY_CONNECTED, [x, w.floats(weights), w.floats(bias)], (w.shape(x)[0], len(weights)), lite.FullyConnectedOptionsT())


def rectify(w, x):
    """Made part of the op before it."""
    assert w.operators[-1].outputs == [x]
    w.operators[-1].builtinOptions.fusedActivationFunction = RECTIFY
    return x


def convert(file, shape):
    """The bytes of a .tflite file."""
    model, w = onnx.load_from_string(file), Writer()
    constants = {array.name: onnx.numpy_helper.to_array(array) for array in model.graph.initializer}
    src = w.tensor(innermost(shape))
    values, images = {"x": src}, {}
    for node in model.graph.node:
        if node.op_type == "Identity":  # of parameters that are equal
            constants[node.output[0]] = constants[node.input[0]]
            continue
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        x = values[node.input[0]]
        rest = [constants.get(name) for name in node.input[1:]]
        if node.op_type == "Conv":
            y = conv(w, attributes, x, *(rest + [None])[:2])
        elif node.op_type == "Gemm":
            y = dense(w, attributes, x, *rest, images.get(x))
        elif node.op_type == "MaxPool":
            y = max_pool(w, attributes, x)
        elif node.op_type == "Relu":
            y = rectify(w, x)
        elif node.op_type == "Tanh":
            y = w.op(OP.TANH, [x], w.shape(x))
        elif node.op_type == "Add":
            y = w.op(OP.ADD, [x, values[node.input[1]]], w.shape(x), lite.AddOptionsT())
        elif node.op_type == "GlobalAveragePool":
            n, _, _, channels = w.shape(x)
            y = w.op(OP.MEAN, [x, w.integers([1, 2])], (n, 1, 1, channels), lite.ReducerOptionsT(keepDims=True))
        elif node.op_type == "Flatten":
            flat = (w.shape(x)[0], int(numpy.prod(w.shape(x)[1:])))
            y = w.op(OP.RESHAPE, [x, w.integers(flat)], flat, lite.ReshapeOptionsT(newShape=list(flat)))
            images[y] = w.shape(x)[1:]
        elif node.op_type == "Softmax":
            y = w.op(OP.SOFTMAX, [x], w.shape(x), lite.SoftmaxOptionsT(beta=1.0))
        else:
            raise SystemExit(f"no rule for {node.op_type}")
        values[node.output[0]] = y
    return w.file(src, values[model.graph.output[0].name])


for case, net, x, want in predictions():
    interpreter = Interpreter(model_content=convert(onnx_bytes(net, x), x.shape), num_threads=1)
    interpreter.allocate_tensors()
    src, dst = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    taken = [op for op in interpreter._get_ops_details() if op["op_name"] == "DELEGATE"]
    assert len(taken) == 1 and src in taken[0]["inputs"] and dst in taken[0]["outputs"]  # all of the model is XNNPACK's
    turned = numpy.ascontiguousarray(x.transpose(0, 2, 3, 1))

    def call():
        interpreter.set_tensor(src, turned)
        interpreter.invoke()
        return interpreter.get_tensor(dst)

    report("export", case, call, "predict", rel_err=error(call(), want))
