"""What belongs together among the keywords of verbs.

`evaluate(model, text, end="eos")` is `evaluate(model, text, scoring=ScoringOptions(end="eos"))`.
"""

from lmgauge.api.choice_fields import PairFields as PairFields
from lmgauge.api.choice_fields import QuestionFields as QuestionFields
from lmgauge.api.outputs import Outputs as Outputs
from lmgauge.filtering.options import FilterRules as FilterRules
from lmgauge.filtering.options import FilterWork as FilterWork
from lmgauge.filtering.options import RecordOptions as RecordOptions
from lmgauge.filtering.selection_settings import SelectionSettings as SelectionSettings
from lmgauge.models.network.options import ScoringOptions as ScoringOptions
from lmgauge.tasks.settings import NbestReading as NbestReading
from lmgauge.tasks.settings import RescoreSettings as RescoreSettings
from lmgauge.text.overlap.settings import OverlapSettings as OverlapSettings
from lmgauge.text.reading_options import ReadingOptions as ReadingOptions

__all__: list[str]
