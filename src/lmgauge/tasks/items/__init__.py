"""Per-item scores of tasks, such as a harness logs them: read, kept as runs, compared."""
