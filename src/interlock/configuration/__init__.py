"""Files and environment become frozen settings: servers, policy, model.

`load` reads and layers the files; what is wrong in them stands in `Configuration.problems`, beside what is right.
"""

from interlock.configuration.difference import Difference, difference
from interlock.configuration.load import load, watchable_files
from interlock.configuration.platform import home_folder, refuse_windows, store_place
from interlock.configuration.trust import TrustStore
from interlock.configuration.values import Configuration, ModelConfig, Problem, ProviderConfig

__all__ = [
    "Configuration",
    "Difference",
    "ModelConfig",
    "Problem",
    "ProviderConfig",
    "TrustStore",
    "difference",
    "home_folder",
    "load",
    "refuse_windows",
    "store_place",
    "watchable_files",
]
