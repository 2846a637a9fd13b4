"""Load: many requests in a short time, and whether memory, open files and answers stay as they were."""
