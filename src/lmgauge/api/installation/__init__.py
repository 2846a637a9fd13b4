"""The libraries that are installed, and what each is for.

May import nothing but the standard library and the modules beside the folders: it must work where all else does not.
"""
