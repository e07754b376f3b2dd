"""config: Theano's flags, from ~/.theanorc, THEANO_FLAGS and the program."""
import configparser
import os

from monochord import _monochord

# name: default, and the flag of the library that it sets; None: it is read by programs and changes nothing here
FLAGS = {
    "floatX": ("float64", "floatX"), "device": ("cpu", "device"), "mode": ("Mode", "mode"),
    "optimizer": ("fast_run", None), "optimizer_including": ("", "rewrite.including"),
    "optimizer_excluding": ("", "rewrite.excluding"), "linker": ("c", None), "cast_policy": ("custom", None),
    "allow_gc": (True, "allow_gc"), "on_unused_input": ("raise", None), "compute_test_value": ("off", None),
    "exception_verbosity": ("low", None), "warn_float64": ("ignore", None), "profile": (False, "profile"),
    "openmp": (False, None), "force_device": (False, None), "init_gpu_device": ("", None), "cxx": ("", None),
    "deterministic": ("default", None), "int_division": ("int", None), "on_opt_error": ("warn", None),
    "floatX_is_default": (True, None), "allow_input_downcast": (None, None), "print_active_device": (True, None),
    "nvcc.fastmath": (False, None), "nvcc.flags": ("", None), "nvcc.compiler_bindir": ("", None),
    "nvcc.cudafe": ("heuristic", None), "cuda.root": ("", "cuda.path"), "lib.cnmem": (0.0, None),
    "gpuarray.preallocate": (-1.0, None), "dnn.enabled": ("auto", "dnn.enabled"),
    "dnn.conv.workmem": ("small", None), "dnn.conv.workmem_bwd": ("none", None),
    "dnn.conv.algo_fwd": ("small", "conv.algo_fwd"), "dnn.conv.algo_bwd": ("none", "conv.algo_bwd_data"),
    "dnn.conv.algo_bwd_data": ("none", "conv.algo_bwd_data"),
    "dnn.conv.algo_bwd_filter": ("none", "conv.algo_bwd_filter"), "dnn.conv.precision": ("as_input_f32", "conv.precision"),
    "blas.ldflags": ("", None), "gcc.cxxflags": ("", None), "base_compiledir": ("", None), "compiledir": ("", None),
    "scan.allow_gc": (False, None), "scan.allow_output_prealloc": (True, None), "experimental.unpickle_gpu_on_cpu": (False, None),
    "warn.ignore_bug_before": ("0.9", None), "warn.subtensor_merge_bug": (False, None), "warn.round": (False, None),
    "warn.sum_sum_bug": (False, None), "warn.sum_div_dimshuffle_bug": (False, None),
    "warn.argmax_pushdown_bug": (False, None), "warn.gpusum_01_011_0111_bug": (False, None),
    "unittests.rseed": (666, None), "pool.gc": (True, None), "numpy.seterr_all": ("ignore", None),
    "traceback.limit": (8, None), "NanGuardMode.nan_is_error": (True, None), "NanGuardMode.inf_is_error": (True, None),
    "NanGuardMode.big_is_error": (True, None), "gpuarray.sync": (False, None), "reoptimize_unpickled_function": (False, None),
    "metaopt.verbose": (0, None), "conv.assert_shape": (False, None),
    "scan.debug": (False, None), "cycle_detection": ("regular", None), "check_stack_trace": ("off", None),
    "openmp_elemwise_minsize": (200000, None), "profile_memory": (False, None), "profile_optimizer": (False, None),
    "profiling.n_apply": (20, None), "profiling.n_ops": (20, None), "profiling.min_memory_size": (1024, None),
    "profiling.min_peak_memory": (False, None), "profiling.destination": ("stderr", None), "profiling.debugprint": (False, None),
    "profiling.ignore_first_call": (False, None), "lib.amdlibm": (False, None), "gpuarray.sched": ("default", None),
    "gpuarray.single_stream": (True, None), "gpuarray.cache_path": ("", None), "assert_no_cpu_op": ("ignore", None),
    "on_shape_error": ("warn", None), "compiledir_format": ("", None), "dnn.include_path": ("", None), "dnn.library_path": ("", None),
    "experimental.local_alloc_elemwise_assert": (True, None), "magma.enabled": (False, None), "magma.include_path": ("", None),
    "magma.library_path": ("", None), "ctc.root": ("", None), "optimizer_requiring": ("", None), "optimizer_verbose": (False, None),
    "nocleanup": (False, None), "compile.timeout": (0, None), "compile.wait": (5, None),
    "DebugMode.check_preallocated_output": ("", None), "DebugMode.check_preallocated_output_ndim": (4, None),
    "DebugMode.warn_input_not_reused": (True, None), "numpy.seterr_divide": ("None", None), "numpy.seterr_over": ("None", None),
    "numpy.seterr_under": ("None", None), "numpy.seterr_invalid": ("None", None), "compute_test_value_opt": ("off", None),
    "print_test_value": (False, None), "cmodule.warn_no_version": (False, None), "cmodule.remove_gxx_opt": (False, None),
    "cmodule.compilation_warning": (False, None), "cmodule.preload_cache": (False, None),
    "cmodule.age_thresh_use": (2073600, None), "cmodule.debug": (False, None), "traceback.compile_limit": (0, None),
    "metaopt.optimizer_excluding": ("", None), "metaopt.optimizer_including": ("", None),
}
WORDS = {"true": True, "false": False}
MODES = {"Mode": "FAST_RUN", "FAST_RUN": "FAST_RUN", "FAST_COMPILE": "FAST_COMPILE", "DEBUG_MODE": "DEBUG",
         "DebugMode": "DEBUG", "NanGuardMode": "NANGUARD", "ProfileMode": "FAST_RUN"}


# Tags of Theano's rewrites that have a stage here; others are names of rewrites that are not there.
STAGES = dict({s: s for s in "canonicalize recognise stabilize specialize layout fusion loops".split()},
              elemwise_fusion="fusion", local_elemwise_fusion="fusion")


def stages_of(tags):
    return ":".join(sorted({STAGES[t] for t in tags if t in STAGES}))


class Section:
    """config, or config.dnn: the flags whose names begin so."""

    def __init__(self, prefix=""):
        self.__dict__["prefix"] = prefix

    def __getattr__(self, name):
        full = self.prefix + name
        if full in values:
            return values[full]
        if full.startswith("warn."):  # about mistakes that Theano once made
            return False
        if any(k.startswith(full + ".") for k in FLAGS):
            return Section(full + ".")
        raise AttributeError("theano.config has no flag %s here; theano/config.py has the table of flags" % full)

    def __setattr__(self, name, value):
        set_flag(self.prefix + name, value)

    def change_flags(self, **flags):
        return changed(flags)


class changed:
    """with config.change_flags(floatX='float32'): ..., or as a decorator"""

    def __init__(self, flags):
        self.flags = flags

    def __enter__(self):
        self.before = {k: values[k] for k in self.flags}
        for k, v in self.flags.items():
            set_flag(k, v)

    def __exit__(self, *error):
        for k, v in self.before.items():
            set_flag(k, v)

    def __call__(self, f):
        def wrapped(*args, **kwargs):
            with changed(self.flags):
                return f(*args, **kwargs)
        return wrapped


def set_flag(name, value):
    if name.startswith("warn.") and name not in FLAGS:
        values[name] = value
        return
    if name not in FLAGS:
        raise AttributeError("theano.config has no flag %s here; theano/config.py has the table of flags" % name)
    default, flag = FLAGS[name]
    if isinstance(value, str) and isinstance(default, bool):
        value = WORDS.get(value.lower(), value not in ("0", ""))
    elif isinstance(value, str) and isinstance(default, (int, float)):
        value = float(value) if isinstance(default, float) else int(float(value))
    if name == "device":
        value = str(value)
        word = value.replace("gpu", "cuda").replace("opencl", "cuda") if value != "cpu" else value
        _monochord.flag_set("device", word)
    elif name == "mode":
        if str(value) not in MODES:
            raise ValueError("there is no mode %s; there are %s" % (value, ", ".join(MODES)))
        _monochord.flag_set("mode", MODES[str(value)])
    elif name == "floatX" and value not in ("float16", "float32", "float64"):
        raise ValueError("floatX is float16, float32 or float64, not %r" % (value,))
    elif flag:
        rewrites = flag.startswith("rewrite.")
        _monochord.flag_set(flag, stages_of(str(value).split(":")) if rewrites else str(value))
    values[name] = value


values = {k: v[0] for k, v in FLAGS.items()}
config = Section()


def read():
    for path in os.environ.get("THEANORC", "~/.theanorc").split(os.pathsep):
        file = configparser.ConfigParser(interpolation=None)
        file.optionxform = str
        file.read(os.path.expanduser(path))
        for section in file.sections():
            for k, v in file.items(section):
                name = k if section == "global" else section + "." + k
                if name in FLAGS:
                    set_flag(name, v)
    for item in os.environ.get("THEANO_FLAGS", "").split(","):
        name, _, v = item.strip().partition("=")
        if name in FLAGS:
            set_flag(name, v)
        elif name:
            import warnings
            warnings.warn("THEANO_FLAGS: there is no flag %s" % name)


read()
