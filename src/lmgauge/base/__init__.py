"""What every room stands on: errors, escaping, files, paths, addresses, threads, memory. May import nothing else of ours."""
