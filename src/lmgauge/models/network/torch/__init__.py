"""Neural language models: scoring any causal network of the `transformers` library, and training small ones of our own.

Modules here may import torch and transformers at the top, and what `lmgauge.models` may of ours; they are only imported
where a neural model is asked for. `options` and `presets` import neither.
"""

import os

# Read when torch is loaded: threads that spin while they wait starve each other where another program has a core.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
