"""Builds the package monochord: CMake builds the extension module, which has the whole library in it.

MONOCHORD_BUILD names a build folder that is there; else it is a temporary one.
"""
import glob
import os
import re
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
LIMITED = sys.version_info >= (3, 11)  # the buffer protocol is part of the limited API from there on


class Build(build_ext):
    def build_extension(self, ext):
        target = os.path.abspath(self.get_ext_fullpath(ext.name))
        build = os.environ.get("MONOCHORD_BUILD")
        if not build:
            build = os.path.abspath(os.path.join(self.build_temp, "cmake"))
            subprocess.check_call(["cmake", "-S", HERE, "-B", build, "-DMONOCHORD_PYTHON=ON", "-DMONOCHORD_TESTS=OFF",
                                   "-DPython3_EXECUTABLE=" + sys.executable])
            subprocess.check_call(["cmake", "--build", build, "--target", "python_module", "-j", os.environ.get(
                "JOBS", str(os.cpu_count() or 1))])
        os.makedirs(os.path.dirname(target), exist_ok=True)
        made = glob.glob(os.path.join(build, "python", "monochord", "_monochord.*.so"))
        self.copy_file(made[0], target)
        subprocess.call(["strip", "--strip-debug", target])


class Wheel(bdist_wheel):
    def finalize_options(self):
        self.py_limited_api = "cp311" if LIMITED else False
        super().finalize_options()


with open(os.path.join(HERE, "include", "monochord.h"), encoding="utf-8") as header:
    version = re.search(r'#define MC_VERSION "([^"]+)"', header.read()).group(1)
setup(version=version, ext_modules=[Extension("monochord._monochord", [], py_limited_api=LIMITED)],
      cmdclass={"build_ext": Build, "bdist_wheel": Wheel})
