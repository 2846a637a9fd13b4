"""Large work cut into stages of tasks that read and write named arrays.

A task is a function that reads some arrays and makes others. It knows nothing of where they lie: in a folder, where they are
read and written one at a time, so that memory holds a few of them; in the memory of other machines. An `Engine` runs the
tasks of a stage, several at a time, and gives the arrays to the stages that follow.

May import only NumPy, `errors`, `files`, `progress` and `threads`; `ray_engine` imports Ray when it is used.
"""
