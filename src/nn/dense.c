/* dense.c: input layers, and layers that are a product with a matrix.
 *
 * Invariant: weights are (inputs, units), as in Lasagne. */
#include "nn/kind.h"

mc_node *mc_nn_probe(struct mc_nn_build *b, const char *form)
{
    struct mc_nn_text t = { 0 };
    mc_node *n = NULL;
    if (!b->failed && mc_nn_fill(&t, form, &b->holes) && !t.bad) {
        n = mc_nn_formula(b->net, b->set.line, b->layer->kind->name, t.s);
    }
    mc_nn_free(&t);
    b->failed |= !n || mc_graph_status(b->net->g) < 0;
    return b->failed ? NULL : n;
}

void mc_nn_let_order(struct mc_nn_build *b, const char *name, int rank, const bool *gone)
{
    int64_t order[NN_MOST_AXES];
    int next = 0;
    for (int i = 0; i < rank; i++) {
        order[i] = gone[i] ? -1 : next++;
    }
    mc_nn_let_ints(b, name, rank, order);
}

bool mc_nn_kept_sizes(struct mc_nn_build *b, int rank, const bool *gone, int64_t *out, int *n)
{
    *n = 0;
    for (int i = 0; i < rank; i++) {
        if (!gone[i]) {
            if (!mc_nn_known(b, "its parameters", i)) {
                return false;
            }
            out[(*n)++] = mc_nn_dims(b, 0)[i];
        }
    }
    return true;
}

bool mc_nn_bias(struct mc_nn_build *b, const char *hole, int rank, int axis, int batch)
{
    bool gone[NN_MOST_AXES], untie = mc_nn_bool(&b->set, "untie");
    mc_node *made = mc_nn_probe(b, hole);
    int64_t dims[NN_MOST_AXES];
    int n = 0;
    for (int i = 0; i < rank && made; i++) {
        gone[i] = untie ? i == batch : i != axis;
        if (!gone[i] && (dims[n++] = mc_node_dims(made)[i]) < 0) {
            return mc_nn_refuse(b, "untie", "a bias for each position needs known sizes");
        }
    }
    if (!made || !mc_nn_weights(b, "b", TRAINABLE, n, dims)) {
        return false;
    }
    mc_nn_let_order(b, "order", rank, gone);
    mc_nn_let(b, "bias",
              mc_nn_is(&b->set, "b", "none")           ? ""
              : rank == n + batch && n < rank && untie ? "$b"
                                                       : "dimshuffle($b, $order)");
    return true;
}

static void input(struct mc_nn_build *b)
{
    int64_t dims[NN_MOST_AXES], batch;
    int n = mc_nn_list(mc_nn_get(&b->set, "shape"), dims, NN_MOST_AXES - 1);
    struct mc_nn_text t = { 0 };
    mc_nn_list(mc_nn_get(&b->set, "batch"), &batch, 1);
    mc_nn_addf(&t, batch >= 0 ? "[%lld" : "[?", (long long)batch);
    for (int i = 0; i < n; i++) {
        mc_nn_addf(&t, dims[i] >= 0 ? ", %lld" : ", ?", (long long)dims[i]);
    }
    mc_nn_add(&t, "]");
    mc_nn_let(b, "sizes", "%s", t.bad ? "" : t.s);
    mc_nn_free(&t);
}

/* The input as a matrix, its trailing axes merged into one, times W. */
static void dense(struct mc_nn_build *b)
{
    int rank = mc_nn_rank(b, 0);
    int64_t axes = mc_nn_int(&b->set, "axes"), in = 1;
    axes += axes < 0 ? rank : 0;
    if (axes < 1 || axes >= rank) {
        mc_nn_refuse(b, "axes", "axes=%lld is out of range for an input of rank %d",
                     (long long)mc_nn_int(&b->set, "axes"), rank);
        return;
    }
    for (int i = (int)axes; i < rank; i++) {
        if (!mc_nn_known(b, "its weights", i)) {
            return;
        }
        in *= mc_nn_dims(b, 0)[i];
    }
    int64_t units = mc_nn_int(&b->set, "units");
    mc_nn_let(b, "rows", rank == axes + 1 ? "$x" : "flatten($x, ndim=%d)", (int)axes + 1);
    (void)(mc_nn_weights(b, "W", REGULARIZABLE, 2, (int64_t[]){ in, units }) &&
           mc_nn_weights(b, "b", TRAINABLE, 1, &units));
}

/* A dense layer at every position: a convolution with filters of one tap. */
static void nin(struct mc_nn_build *b)
{
    int rank = mc_nn_rank(b, 0);
    static const char *const order[] = {
        NULL, NULL, NULL, "[1, 0, -1]", "[1, 0, -1, -1]", "[1, 0, -1, -1, -1]"
    };
    if (rank < 3 || rank > 5) {
        mc_nn_refuse(b, NULL, "the input has rank %d; expected 3 to 5", rank);
    } else if (mc_nn_known(b, "its weights", 1)) {
        mc_nn_let(b, "conv", "conv($x, dimshuffle($W, %s))", order[rank]);
        (void)(mc_nn_weights(b, "W", REGULARIZABLE, 2,
                             (int64_t[]){ mc_nn_dims(b, 0)[1], mc_nn_int(&b->set, "units") }) &&
               mc_nn_bias(b, "$conv", rank, 1, 0));
    }
}

static void embedding(struct mc_nn_build *b)
{
    const bool whole = mc_node_dtype(b->layer->in[0]->node[0]) <= MC_UINT64;
    mc_nn_let(b, "index", "%s", whole ? "$x" : "cast($x, int32)"); /* batches have whole numbers as floats */
    mc_nn_weights(b, "W", REGULARIZABLE, 2,
                  (int64_t[]){ mc_nn_int(&b->set, "words"), mc_nn_int(&b->set, "units") });
}

const struct mc_nn_kind mc_nn_plain[] = {
    /* name          doc                                         inputs  settings */
    { "input",       "data: the sizes of one example",                0,
      { { "shape", NN_SIZES, NULL }, { "batch", NN_SIZES, "?" }, { "dtype", NN_WORD, "floatX", "floatX|float32|float64|float16|int8|uint8|int32|int64" } },
      input,         "input $var $dtype$sizes", NULL },
    { "dense",       "all numbers of an example times a matrix of weights; axes: the number of leading axes that are kept", 1,
      { { "units", NN_COUNT, NULL }, ACT("rectify"), WEIGHT, { "b", NN_CALL, "0" }, { "axes", NN_INT, "1" } },
      dense,         "dot($rows, $W){ + $b}", NULL },
    { "nin",         "a dense layer across channels at each position",  1,
      { { "units", NN_COUNT, NULL }, ACT("rectify"), WEIGHT, BIAS },
      nin,           "$conv{ + $bias}", NULL },
    { "embedding",   "each whole number replaced by a row of weights",        1,
      { { "words", NN_COUNT, NULL }, { "units", NN_INT, NULL }, { "W", NN_CALL, "normal" } },
      embedding,     "$W[$index]", NULL },
    { "nonlinearity", "a nonlinearity alone",                         1,
      { ACT("rectify") },
      NULL,          "$x", NULL },
    { "expression",  "any formula of $x",                             1,
      { { "formula", NN_TEXT, NULL } },
      NULL,          "$formula", NULL },
    LAST_KIND,
};
