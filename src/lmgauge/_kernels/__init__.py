"""Compiled hot loops: flat functions over NumPy arrays that release the GIL. This room imports nothing of lmgauge."""
