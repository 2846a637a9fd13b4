"""Documents scored and filtered by what language models make of them, at the size of corpora."""
