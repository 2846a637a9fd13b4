"""The door: the functions of `import lmgauge`, with the words of the command line. May import every room but `cli`."""
