"""Which of several texts a model prefers: pairs and questions. May import the modules of `evaluation`."""
