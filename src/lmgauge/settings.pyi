"""What belongs together among the keywords of verbs.

`evaluate(model, text, end="eos")` is `evaluate(model, text, scoring=ScoringOptions(end="eos"))`.
"""

from lmgauge.api.baseline import NgramRungs as NgramRungs
from lmgauge.api.choices import PairFields as PairFields
from lmgauge.api.choices import QuestionFields as QuestionFields
from lmgauge.api.verdicts import RunText as RunText
from lmgauge.evaluation.options import AuditSettings as AuditSettings
from lmgauge.evaluation.options import DiagnosisSettings as DiagnosisSettings
from lmgauge.evaluation.options import DivergenceSettings as DivergenceSettings
from lmgauge.evaluation.options import MembershipSettings as MembershipSettings
from lmgauge.evaluation.options import Outputs as Outputs
from lmgauge.evaluation.options import SampleSettings as SampleSettings
from lmgauge.evaluation.options import StoringSettings as StoringSettings
from lmgauge.filtering.options import FilterRules as FilterRules
from lmgauge.filtering.options import FilterWork as FilterWork
from lmgauge.filtering.options import PoolReading as PoolReading
from lmgauge.filtering.options import RecordOptions as RecordOptions
from lmgauge.filtering.options import SelectionSettings as SelectionSettings
from lmgauge.models.model_settings import CacheSettings as CacheSettings
from lmgauge.models.model_settings import SpellerSettings as SpellerSettings
from lmgauge.models.model_settings import VocabularySettings as VocabularySettings
from lmgauge.models.network.options import ScoringOptions as ScoringOptions
from lmgauge.models.ngram.kenlm.form import KenlmForm as KenlmForm
from lmgauge.models.ngram.limits import TrainingResources as TrainingResources
from lmgauge.models.ngram.settings import NgramTrainingSettings as NgramTrainingSettings
from lmgauge.models.training.settings import NeuralTrainingSettings as NeuralTrainingSettings
from lmgauge.models.training.settings import RunSettings as RunSettings
from lmgauge.tasks.settings import BleuOptions as BleuOptions
from lmgauge.tasks.settings import ChrfOptions as ChrfOptions
from lmgauge.tasks.settings import NbestReading as NbestReading
from lmgauge.tasks.settings import NormalizationOptions as NormalizationOptions
from lmgauge.tasks.settings import PublicTest as PublicTest
from lmgauge.tasks.settings import RescoreSettings as RescoreSettings
from lmgauge.tasks.settings import TerOptions as TerOptions
from lmgauge.text.overlap.overlap_settings import OverlapSettings as OverlapSettings
from lmgauge.text.reading_options import ReadingOptions as ReadingOptions
from lmgauge.work.shard import Sharing as Sharing

__all__: list[str]
