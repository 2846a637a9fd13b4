"""The public names of this room, and their homes."""

from lmgauge.api.train import count_ngrams as count_ngrams
from lmgauge.models.combined.mixture.model import MixtureModel as MixtureModel
from lmgauge.models.combined.spelling.model import SpelledModel as SpelledModel
from lmgauge.models.network.torch.architectures import register_architectures as register_architectures
from lmgauge.models.network.torch.model import NeuralModel as NeuralModel
from lmgauge.models.ngram.arpa_reader import read_arpa as read_arpa
from lmgauge.models.ngram.arpa_writer import write_arpa as write_arpa

__all__: list[str]
