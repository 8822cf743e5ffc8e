"""A structure-aware fuzzer of everything that reads files: `make fuzz`.

Every case is a folder of hostile files and one command line, made from a format, a seed and a number, so that
any of them can be made again. What ever failed is kept in `corpus`, which the fast tests run.
"""
