"""Builds the package monochord: CMake builds the extension module, which has the whole library in it."""
import os
import re
import subprocess

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

HERE = os.path.dirname(os.path.abspath(__file__))


class Build(build_ext):
    def build_extension(self, ext):
        target = os.path.abspath(self.get_ext_fullpath(ext.name))
        build = os.path.abspath(os.path.join(self.build_temp, "cmake"))
        subprocess.check_call(["cmake", "-S", HERE, "-B", build, "-DMONOCHORD_PYTHON=ON", "-DMONOCHORD_TESTS=OFF"])
        subprocess.check_call(["cmake", "--build", build, "--target", "python_module", "-j", os.environ.get(
            "JOBS", str(os.cpu_count() or 1))])
        os.makedirs(os.path.dirname(target), exist_ok=True)
        self.copy_file(os.path.join(build, "python", "monochord", "_monochord.abi3.so"), target)
        subprocess.call(["strip", "--strip-debug", target])


class Wheel(bdist_wheel):
    def finalize_options(self):
        self.py_limited_api = "cp311"
        super().finalize_options()


with open(os.path.join(HERE, "include", "monochord.h"), encoding="utf-8") as header:
    version = re.search(r'#define MC_VERSION "([^"]+)"', header.read()).group(1)
setup(version=version, ext_modules=[Extension("monochord._monochord", [], py_limited_api=True)],
      cmdclass={"build_ext": Build, "bdist_wheel": Wheel})
