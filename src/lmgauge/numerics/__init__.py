"""Numbers: units, exact sums, intervals, resampling, tests of significance; one of each.

May import `_kernels` and what every room may.
"""
