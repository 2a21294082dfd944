"""Where other hosts keep their servers.

Owns: the usual places of their files, on Linux and on macOS.
Never: reads one.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFile:
    """A file of another host. `member`: the keys that lead to the object that holds its servers.

    `key` is a short word for names; `workspace` the folder that relative paths of its servers mean.
    """

    host: str
    key: str
    file: Path
    member: tuple[str, ...] = ()
    workspace: Path | None = None


def usual_places(
    project: Path, environment: Mapping[str, str], *, user: Path | None = None, platform: str = sys.platform
) -> tuple[HostFile, ...]:
    """Every place that is looked at, existing or not: those of the project, then those of the user.

    `user` is the user's home folder (default: the one of this process).
    """
    return (*_of_project(project), *_of_user(user or Path.home(), project, environment, platform))


def _of_project(project: Path) -> tuple[HostFile, ...]:
    def here(host: str, key: str, name: str) -> HostFile:
        return HostFile(host=host, key=key, file=project / name, workspace=project)

    return (
        here("Claude Code (project)", "project", ".mcp.json"),
        here("VS Code (workspace)", "workspace", ".vscode/mcp.json"),
        here("Cursor (project)", "cursor-project", ".cursor/mcp.json"),
    )


def _of_user(user: Path, project: Path, environment: Mapping[str, str], platform: str) -> tuple[HostFile, ...]:
    settings = user / ("Library/Application Support" if platform == "darwin" else ".config")
    claude = user / ".claude.json"
    codex = Path(environment.get("CODEX_HOME") or user / ".codex")
    return (
        HostFile(host="Claude Desktop", key="claude", file=settings / "Claude/claude_desktop_config.json"),
        HostFile(host="Claude Code", key="claude-code", file=claude),
        HostFile(
            host="Claude Code (this project)",
            key="claude-project",
            file=claude,
            member=("projects", str(project)),
            workspace=project,
        ),
        HostFile(host="VS Code", key="vscode", file=settings / "Code/User/mcp.json"),
        HostFile(
            host="VS Code (settings)", key="vscode-settings", file=settings / "Code/User/settings.json", member=("mcp",)
        ),
        HostFile(host="Codex", key="codex", file=codex / "config.toml"),
        HostFile(host="Cursor", key="cursor", file=user / ".cursor/mcp.json"),
        HostFile(host="Windsurf", key="windsurf", file=user / ".codeium/windsurf/mcp_config.json"),
        HostFile(host="Gemini CLI", key="gemini", file=user / ".gemini/settings.json"),
    )
