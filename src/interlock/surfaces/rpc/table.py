"""All methods.

Owns: the one table from which requests are served, the schema is printed and the reference is written.
Never: holds a method of its own.
"""

from collections.abc import Mapping
from typing import Final

from interlock.surfaces.rpc import configuration, resources, servers, thread_changes, thread_list, threads, turns
from interlock.surfaces.rpc.method import Method

METHODS: Final[Mapping[str, Method]] = {
    method.name: method
    for topic in (configuration, threads, thread_list, thread_changes, turns, servers, resources)
    for method in topic.METHODS
}
