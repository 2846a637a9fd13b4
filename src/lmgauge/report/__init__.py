"""Results for people and programs. May import evaluation and what lies below it; never a model."""
