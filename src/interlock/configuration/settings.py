"""The top level of the files becomes a Policy and a ModelConfig.

Owns: approval, sandbox, orchestrator, apps, model and provider keys (BEHAVIOUR section 2).
Never: fails for a key that it does not know; a setting that limits and cannot be read counts as its strictest value.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from interlock.configuration.approval_rules import read_rules
from interlock.configuration.codex import ONLY_CODEX
from interlock.configuration.findings import Findings
from interlock.configuration.limits import Setting, read_limits
from interlock.configuration.providers import build_provider
from interlock.configuration.references import Lookup
from interlock.configuration.tables import suggestion
from interlock.configuration.values import DEFAULT_TOOL_OUTPUT_TOKENS, ModelConfig, Problem, ProviderConfig
from interlock.vocabulary.policy import AppPolicy, ApprovalRule, Policy

FROM_USERS = frozenset(
    {
        "approval_policy",
        "approval_rules",
        "store_answers",
        "sandbox_mode",
        "allowed_approval_policies",
        "allowed_sandbox_modes",
        "orchestrator",
        "apps",
        "model_provider",
        "model_providers",
        "openai_base_url",
    }
)
"""Read only from the home folder and `--config` (BEHAVIOUR section 10)."""

FROM_ANYWHERE = frozenset({"model", "tool_output_token_limit", "model_auto_compact_token_limit"})
MERGED = frozenset({"apps", "model_providers"})
"""Tables of tables: a nearer file replaces single entries."""


def collect(document: Mapping[str, Any], file: Path, *, restricted: bool) -> tuple[dict[str, Setting], list[Problem]]:
    """The settings of one file by dotted key, entries of MERGED tables apart; and what is wrong with its top level."""
    findings = Findings(str(file), "")
    settings: dict[str, Setting] = {}
    for key, value in document.items():
        if key == "mcp_servers":
            continue
        if key in FROM_USERS and restricted:
            findings.warn(key, "a project's file cannot decide this; write it into the home configuration")
        elif key in MERGED and isinstance(value, Mapping):
            settings |= {f"{key}.{name}": Setting(entry, file) for name, entry in value.items()}
        elif key in FROM_USERS | FROM_ANYWHERE:
            settings[key] = Setting(value, file)
        elif key not in ONLY_CODEX:
            known = sorted(FROM_USERS | FROM_ANYWHERE | {"mcp_servers"})
            findings.warn(key, f"unknown {'table' if isinstance(value, Mapping) else 'key'}{suggestion(key, known)}")
    return settings, findings.problems


class Settings:
    """All layers' settings, the nearest value for each key, with the problems met while reading them."""

    def __init__(self, values: Mapping[str, Setting]) -> None:
        self._values = values
        self.problems: list[Problem] = []

    def policy(self) -> Policy:
        limits = read_limits(self._values, self._warn)
        approval, elicitations = self._approval()
        apps = {name: AppPolicy(enabled=self._enabled("apps", name, app)) for name, app in self._entries("apps")}
        return Policy(
            approval=limits.approval("never" if approval == "never" else "on-request"),
            mcp_elicitations=elicitations,
            full_access=limits.full_access(self._full_access()),
            allowed_approvals=limits.approvals,
            allowed_sandboxes=limits.sandboxes,
            orchestrator_mcp_enabled=self._orchestrator(),
            apps={name: app for name, app in apps.items() if name != "_default"},
            apps_default=apps.get("_default", AppPolicy()),
            approval_rules=self._approval_rules(),
            store_answers=self._store_answers(),
        )

    def model(self, environment: Mapping[str, str], find: Mapping[Path, Lookup]) -> ModelConfig:
        """`find` holds the look-up of each file, for references relative to it."""
        return ModelConfig(
            name=self._text("model"),
            provider=self._provider(environment, find),
            tool_output_token_limit=self._tokens("tool_output_token_limit") or DEFAULT_TOOL_OUTPUT_TOKENS,
            auto_compact_token_limit=self._tokens("model_auto_compact_token_limit"),
        )

    def _tokens(self, key: str) -> int | None:
        limit = self._get(key)
        if limit is None:
            return None
        if type(limit.value) is not int or limit.value < 1:
            self._warn(limit, key, "must be a whole number above 0; the default is used")
            return None
        return limit.value

    def _get(self, key: str) -> Setting | None:
        return self._values.get(key)

    def _entries(self, table: str) -> Iterator[tuple[str, Setting]]:
        for key, setting in self._values.items():
            head, _, name = key.partition(".")
            if head == table and name:
                yield name, setting
            elif head == table:
                self._warn(setting, table, "must be a table of tables; it is ignored")

    def _warn(self, setting: Setting, key: str, sentence: str, table: str = "") -> None:
        self.problems.append(Problem(file=str(setting.file), table=table, key=key, sentence=sentence))

    def _text(self, key: str) -> str | None:
        setting = self._get(key)
        if setting is None:
            return None
        if isinstance(setting.value, str) and setting.value.strip():
            return setting.value.strip()
        self._warn(setting, key, "must be a text; it is ignored")
        return None

    def _approval(self) -> tuple[str, bool]:
        setting = self._get("approval_policy")
        if setting is None:
            return "on-request", True
        value = setting.value
        if value in ("on-request", "never", "untrusted", "on-failure"):
            return value, True
        granular = value.get("granular") if isinstance(value, Mapping) else None
        if not isinstance(granular, Mapping):
            self._warn(
                setting, "approval_policy", 'must be "on-request", "never" or { granular = … }; "on-request" is used'
            )
            return "on-request", True
        elicitations = granular.get("mcp_elicitations", True)
        if not isinstance(elicitations, bool):
            key = "approval_policy.granular.mcp_elicitations"
            self._warn(setting, key, "must be true or false; elicitations are declined until then")
        return "on-request", elicitations is True

    def _approval_rules(self) -> tuple[ApprovalRule, ...]:
        setting = self._get("approval_rules")
        if setting is None:
            return ()
        findings = Findings(str(setting.file), "approval_rules")
        rules = read_rules(setting.value, setting.file, findings)
        self.problems.extend(findings.problems)
        return rules

    def _store_answers(self) -> bool:
        setting = self._get("store_answers")
        if setting is not None and not isinstance(setting.value, bool):
            self._warn(setting, "store_answers", "must be true or false; answers are not stored until then")
        return setting is not None and setting.value is True

    def _full_access(self) -> bool:
        setting = self._get("sandbox_mode")
        modes = ("read-only", "workspace-write", "danger-full-access")
        if setting is not None and setting.value not in modes:
            self._warn(setting, "sandbox_mode", f"must be one of {', '.join(modes)}; access does not count as full")
        return setting is not None and setting.value == "danger-full-access"

    def _orchestrator(self) -> bool:
        setting = self._get("orchestrator")
        if setting is None:
            return True
        gate = setting.value.get("mcp", {}) if isinstance(setting.value, Mapping) else None
        enabled = gate.get("enabled", True) if isinstance(gate, Mapping) else None
        if not isinstance(enabled, bool):
            self._warn(setting, "mcp.enabled", "must be true or false; the gate is closed until then", "orchestrator")
        return enabled is True

    def _enabled(self, table: str, name: str, setting: Setting) -> bool:
        enabled = setting.value.get("enabled", True) if isinstance(setting.value, Mapping) else None
        if not isinstance(enabled, bool):
            self._warn(setting, "enabled", "must be true or false; the app is off until then", f"{table}.{name}")
        return enabled is True

    def _provider(self, environment: Mapping[str, str], find: Mapping[Path, Lookup]) -> ProviderConfig:
        """The provider in use. Others are left alone, so that no keyring is asked for a key that nobody needs."""
        chosen = self._text("model_provider") or "openai"
        tables = dict(self._entries("model_providers"))
        setting = tables.get(chosen)
        if setting is not None:
            provider, problems = build_provider(
                chosen, setting.value, str(setting.file), environment, find[setting.file]
            )
            self.problems.extend(problems)
            return provider
        if chosen == "openai":
            address = self._text("openai_base_url")
            return ProviderConfig(base_url=address) if address else ProviderConfig()
        selected = self._values["model_provider"]
        sentence = f"names {chosen}, but there is no table [model_providers.{chosen}]; add it"
        problem = Problem(file=str(selected.file), table="", key="model_provider", sentence=sentence, fatal=True)
        self.problems.append(problem)
        return ProviderConfig(key=chosen, name=chosen, problem=str(problem))
