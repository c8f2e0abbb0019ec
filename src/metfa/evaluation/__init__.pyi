from metfa.evaluation.results import Evaluation as Evaluation
from metfa.evaluation.run import evaluate as evaluate
from metfa.evaluation.run import prepare as prepare
from metfa.evaluation.store import UnitStore as UnitStore
from metfa.evaluation.study import Study as Study
from metfa.evaluation.tables import Table as Table
from metfa.evaluation.toml import read_study as read_study
from metfa.evaluation.written import write_tables as write_tables
