from .basic import elementwise
xlogx, xlogy0 = elementwise("xlogx", "xlogx"), elementwise("xlogy0", "xlogy0")
