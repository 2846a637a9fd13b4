"""What every room stands on and imports: errors, escaping, files, paths and addresses, threads, memory, how results print."""
