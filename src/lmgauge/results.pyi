"""What verbs return."""

from lmgauge.api.doctor import Checkup as Checkup
from lmgauge.api.info import Info as Info
from lmgauge.api.rows import RunRows as RunRows
from lmgauge.api.sharding.evaluation import FinishedShard as FinishedShard
from lmgauge.evaluation.agreement.results import AgreementSeries as AgreementSeries
from lmgauge.evaluation.agreement.results import EngineAgreement as EngineAgreement
from lmgauge.evaluation.audit.checks import Audit as Audit
from lmgauge.evaluation.baselines import Ladder as Ladder
from lmgauge.evaluation.choices.accuracies import Choices as Choices
from lmgauge.evaluation.comparison.results import Comparison as Comparison
from lmgauge.evaluation.comparison.results import Comparisons as Comparisons
from lmgauge.evaluation.comparison.until import Decision as Decision
from lmgauge.evaluation.context_curve.curve import ContextCurve as ContextCurve
from lmgauge.evaluation.diagnosis.results import Diagnosis as Diagnosis
from lmgauge.evaluation.divergence.divergence_result import CandidateDivergences as CandidateDivergences
from lmgauge.evaluation.divergence.divergence_result import Divergence as Divergence
from lmgauge.evaluation.divergence.divergence_result import SavedBase as SavedBase
from lmgauge.evaluation.membership.membership import Membership as Membership
from lmgauge.evaluation.results import Evaluation as Evaluation
from lmgauge.evaluation.results import Evaluations as Evaluations
from lmgauge.evaluation.sampled import Estimate as Estimate
from lmgauge.evaluation.words.rows import WordSurprisals as WordSurprisals
from lmgauge.filtering.documents import DocumentScores as DocumentScores
from lmgauge.filtering.percentiles import Percentiles as Percentiles
from lmgauge.filtering.results import FilteredDocuments as FilteredDocuments
from lmgauge.filtering.selection import Selection as Selection
from lmgauge.models.combined.mixture.static import StaticMixture as StaticMixture
from lmgauge.models.ngram.count_files import NgramCounts as NgramCounts
from lmgauge.models.ngram.pruning import PrunedModel as PrunedModel
from lmgauge.models.scored_text import ScoredText as ScoredText
from lmgauge.models.scored_text import ScoredTexts as ScoredTexts
from lmgauge.numerics.lower_bound import LowerBound as LowerBound
from lmgauge.report.documents import Report as Report
from lmgauge.tasks.items.results import ItemComparisons as ItemComparisons
from lmgauge.tasks.nbest.rescoring import Rescored as Rescored
from lmgauge.text.overlap.overlap_results import Overlap as Overlap
from lmgauge.text.split import SplitText as SplitText

__all__: list[str]
