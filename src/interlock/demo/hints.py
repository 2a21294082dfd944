"""What the bundled servers say of their tools: the hints by which a host decides whom to ask.

Owns: three sets of tool annotations.
Never: stops anything: hints are a server's word, the host's policy acts on them.
"""

# The SDK's public name for it is in its types package, from which this room does not import.
from mcp.server.mcpserver.tools.base import ToolAnnotations  # type: ignore[attr-defined]

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False)
DESTROYS = ToolAnnotations(read_only_hint=False, destructive_hint=True)
