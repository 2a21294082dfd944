"""Codex's keys for things that Interlock does not have.

Owns: the names that a real config.toml of Codex may hold and that have no effect here (CFG-1).
Never: warns about them at the top level, for the same file has to work unchanged; in the tables of servers and
providers it does, where the key may matter to the connection.
"""

# fmt: off
ONLY_CODEX = frozenset({
    "agents", "allow_login_shell", "analytics", "approvals_reviewer", "audio", "auto_review",
    "background_terminal_max_timeout", "chatgpt_base_url", "check_for_update_on_startup",
    "cli_auth_credentials_store", "commit_attribution", "compact_prompt", "debug", "default_permissions",
    "desktop", "developer_instructions", "disable_paste_burst", "experimental_compact_prompt_file",
    "experimental_instructions_file", "experimental_resume", "experimental_use_freeform_apply_patch",
    "experimental_use_unified_exec_tool", "features", "feedback", "file_opener", "forced_chatgpt_workspace_id",
    "forced_login_method", "ghost_snapshot", "hide_agent_reasoning", "history", "hooks",
    "include_apps_instructions", "include_collaboration_mode_instructions", "include_environment_context",
    "include_permissions_instructions", "instructions", "log_dir", "marketplaces", "mcp_oauth_callback_port",
    "mcp_oauth_callback_url", "mcp_oauth_credentials_store", "memories",
    "model_auto_compact_token_limit_scope", "model_catalog_json", "model_context_window",
    "model_instructions_file", "model_max_output_tokens", "model_reasoning_effort", "model_reasoning_summary",
    "model_reasoning_summary_format", "model_supports_reasoning_summaries", "model_verbosity", "notice",
    "notify", "oss_provider", "otel", "permissions", "personality", "plan_mode_reasoning_effort", "plugins",
    "profile", "profiles", "project_doc_fallback_filenames", "project_doc_max_bytes", "project_root_markers",
    "projects", "realtime", "review_model", "sandbox_workspace_write", "service_tier",
    "shell_environment_policy", "show_raw_agent_reasoning", "skills", "sqlite_home",
    "suppress_unstable_features_warning", "tool_suggest", "tools", "tui", "web_search", "windows",
    "windows_wsl_setup_acknowledged", "zsh_path",
})
# fmt: on

ONLY_CODEX_SERVER = frozenset(
    {"auth", "environment_id", "experimental_environment", "http_headers_helper", "omit_tools_from"}
)

ONLY_CODEX_OAUTH = frozenset({"callback_url"})

ONLY_CODEX_PROVIDER = frozenset(
    {
        "auth",
        "aws",
        "env_key_instructions",
        "requires_openai_auth",
        "supports_websockets",
        "websocket_connect_timeout_ms",
    }
)
