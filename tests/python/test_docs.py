"""The examples of docs/python.md and docs/theano.md print what stands there."""
import doctest
import os
import re

import numpy as np
import pytest

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")


@pytest.mark.skipif(not hasattr(np, "from_dlpack"), reason="NumPy before 1.23 prints and offers less")
@pytest.mark.parametrize("name", ["python.md", "theano.md"])
def test_examples(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as f:
        blocks = re.findall(r"^```python\n(.*?)^```", f.read(), re.M | re.S)
    assert blocks
    import monochord
    monochord.reset()
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, name, 0)
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


def test_the_table_of_exceptions_is_complete():
    from monochord import _monochord as m
    with open(os.path.join(FOLDER, "python.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `MC_E", f.read(), re.M)
    classes = {n for n in dir(m) if isinstance(getattr(m, n), type) and issubclass(getattr(m, n), m.Error)} - {"Error"}
    assert {n for n, _ in rows} == classes
    for name, base in rows:
        assert issubclass(getattr(m, name), getattr(__import__("builtins"), base))
