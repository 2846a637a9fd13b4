"""Records of files: every format, packed or not, from a path, a pipe or an address, read and written by one room.

`formats.py` is the table: a row for each format, with the endings of its files and the module that has its `Reader` and its
`Writer`. A reader yields raw blocks, which costs little, and parses one when asked to, which several threads may do at a
time; what is wrong with a record is said beside it, and who reads decides what becomes of it. A record keeps its number and,
if asked for, what stood in the file, so that it can be written back with every field.

May import nothing but what every room may.
"""
