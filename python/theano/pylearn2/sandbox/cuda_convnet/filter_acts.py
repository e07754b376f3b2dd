from . import made_first

ACTS = made_first("filter_acts", ["pad", "partial_sum", "stride"], {"pad": 0, "partial_sum": None, "stride": 1})


class FilterActs(ACTS):
    """FilterActs(pad, partial_sum, stride)(images, filters)"""
