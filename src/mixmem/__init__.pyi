"""Public names, as editors and type checkers see them; ``__init__.py`` imports each when it is first used."""

from mixmem.data.coding import Coding as Coding
from mixmem.data.document_pieces import DocumentPieces as DocumentPieces
from mixmem.data.encode import Encoded as Encoded
from mixmem.data.encode import decode as decode
from mixmem.data.encode import encode as encode
from mixmem.data.encode import learn_coding as learn_coding
from mixmem.data.schema import Schema as Schema
from mixmem.data.schema import Variable as Variable
from mixmem.engine.rows import n_stretches as n_stretches
from mixmem.engine.rows import stretch_rows as stretch_rows
from mixmem.errors import FitWarning as FitWarning
from mixmem.errors import InputError as InputError
from mixmem.errors import TableWarning as TableWarning
from mixmem.likelihood.marginal import row_likelihood as row_likelihood
from mixmem.likelihood.memberships import RowFit as RowFit
from mixmem.likelihood.memberships import fit_rows as fit_rows
from mixmem.models.crowd.model import DawidSkene as DawidSkene
from mixmem.models.crowd.model import MajorityVote as MajorityVote
from mixmem.models.crowd.model import OneCoinDawidSkene as OneCoinDawidSkene
from mixmem.models.gdlm import GDLM as GDLM
from mixmem.models.gdlm import load as load
from mixmem.models.moments import Moments as Moments
from mixmem.models.moments_plan import MomentsPlan as MomentsPlan
from mixmem.models.topics.model import TopicModel as TopicModel
from mixmem.moments.anchors import Plan as Plan
from mixmem.moments.anchors import make_plan as make_plan
from mixmem.moments.components import Alignment as Alignment
from mixmem.moments.components import align_components as align_components
from mixmem.moments.components import alignment as alignment
from mixmem.moments.components import common_rows as common_rows
from mixmem.moments.components import rmse as rmse
from mixmem.moments.dirichlet import correct_second as correct_second
from mixmem.moments.dirichlet import correct_third as correct_third
from mixmem.moments.dirichlet import second_moment as second_moment
from mixmem.moments.dirichlet import third_moment as third_moment
from mixmem.moments.dirichlet import weights_of as weights_of
from mixmem.moments.documents import TokenMoments as TokenMoments
from mixmem.moments.documents import token_moments as token_moments
from mixmem.moments.matching import Guarantee as Guarantee
from mixmem.moments.matching import Matching as Matching
from mixmem.moments.matching import match_columns as match_columns
from mixmem.moments.solvers import Factorization as Factorization
from mixmem.moments.solvers import NqpResult as NqpResult
from mixmem.moments.solvers import factorize as factorize
from mixmem.moments.solvers import solve_nqp as solve_nqp
from mixmem.moments.sums import FirstMoments as FirstMoments
from mixmem.moments.sums import first_moments as first_moments
from mixmem.moments.sums import second_moments as second_moments
from mixmem.moments.third_moments import BlockMoments as BlockMoments
from mixmem.moments.third_moments import third_moments as third_moments
from mixmem.results.compare import Comparison as Comparison
from mixmem.results.compare import Regression as Regression
from mixmem.results.goodness import Goodness as Goodness
from mixmem.results.goodness import goodness_of_fit as goodness_of_fit
from mixmem.results.simulate import Simulation as Simulation
from mixmem.results.simulate import simulate_gdlm as simulate_gdlm
from mixmem.results.simulate import simulate_mixed as simulate_mixed
from mixmem.results.simulate_documents import SimulatedDocuments as SimulatedDocuments
from mixmem.results.simulate_documents import simulate_documents as simulate_documents
from mixmem.selection.n_components import KChoice as KChoice
from mixmem.selection.n_components import choose_k as choose_k
from mixmem.selection.n_topics import TopicChoice as TopicChoice
from mixmem.selection.n_topics import choose_topics as choose_topics

__version__: str

__all__ = [
    "GDLM",
    "Alignment",
    "BlockMoments",
    "Coding",
    "Comparison",
    "DawidSkene",
    "DocumentPieces",
    "Encoded",
    "Factorization",
    "FirstMoments",
    "FitWarning",
    "Goodness",
    "Guarantee",
    "InputError",
    "KChoice",
    "MajorityVote",
    "Matching",
    "Moments",
    "MomentsPlan",
    "NqpResult",
    "OneCoinDawidSkene",
    "Plan",
    "Regression",
    "RowFit",
    "Schema",
    "SimulatedDocuments",
    "Simulation",
    "TableWarning",
    "TokenMoments",
    "TopicChoice",
    "TopicModel",
    "Variable",
    "__version__",
    "align_components",
    "alignment",
    "choose_k",
    "choose_topics",
    "common_rows",
    "correct_second",
    "correct_third",
    "decode",
    "encode",
    "factorize",
    "first_moments",
    "fit_rows",
    "goodness_of_fit",
    "learn_coding",
    "load",
    "make_plan",
    "match_columns",
    "n_stretches",
    "rmse",
    "row_likelihood",
    "second_moment",
    "second_moments",
    "simulate_documents",
    "simulate_gdlm",
    "simulate_mixed",
    "solve_nqp",
    "stretch_rows",
    "third_moment",
    "third_moments",
    "token_moments",
    "weights_of",
]
