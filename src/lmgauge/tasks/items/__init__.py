"""Per-item scores of tasks, such as a harness logs them: read, kept as runs, compared.

May import what `tasks` may; nothing of it computes a metric.
"""
