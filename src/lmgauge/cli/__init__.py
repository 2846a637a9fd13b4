"""The command line: one file per group of commands. No logic, only words; each imports what it needs when it runs."""
