from .basic import names
xlogx, xlogy0 = names["xlogx"], names["xlogy0"]
