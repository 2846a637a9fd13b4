"""What lmgauge runs on: the machine, its folders, the libraries that are installed and what each is for.

Reads what the system, the environment and the metadata of packages say, and tries to import libraries in a process of their
own, so that one that is broken breaks nothing here. Imports nothing but the standard library and the modules beside the
folders: it must work where all else does not.
"""
