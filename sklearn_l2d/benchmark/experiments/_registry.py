"""The experiments of the benchmark by the name on the command line, in the order of the report."""

from ._answers import ANSWERS
from ._bounded import BOUNDED
from ._calibration import CALIBRATION
from ._clusters import CLUSTERS
from ._control import CONTROL
from ._memberships import MEMBERSHIPS
from ._missing import MISSING
from ._newcomers import NEWCOMERS
from ._onboarding import ONBOARDING
from ._sensitivity import SENSITIVITY
from ._tuning import TUNING

EXPERIMENTS = {
    "onboarding": ONBOARDING,
    "answers": ANSWERS,
    "newcomers": NEWCOMERS,
    "bounded": BOUNDED,
    "clusters": CLUSTERS,
    "memberships": MEMBERSHIPS,
    "sensitivity": SENSITIVITY,
    "missing": MISSING,
    "control": CONTROL,
    "calibration": CALIBRATION,
    "tuning": TUNING,
}
