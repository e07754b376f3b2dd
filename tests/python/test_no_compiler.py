"""Without a compiler the reference loops run, and the library's own kernels of products and convolutions."""
import os
import subprocess
import sys


def test_no_compiler(tmp_path):
    env = dict(os.environ, PATH=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    done = subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "no_compiler.py")],
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
