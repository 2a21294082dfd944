"""What each key of a configuration file means.

The keys, their types and their defaults are the code's; only the sentences stand here. A test sees to it that there is
one for each key, and none for a key that is gone.
"""

TOP_LEVEL = {
    "model": "The model that turns and `interlock exec` ask.",
    "model_provider": 'Which table `[model_providers.NAME]` is used; `"openai"` is built in.',
    "model_providers": "Endpoints of models, see below.",
    "openai_base_url": "Another address for the built-in provider.",
    "approval_policy": '`"on-request"`, `"never"` (nobody is asked, what would have to be asked is refused), or '
    "`{ granular = { mcp_elicitations = false } }` (servers may not ask).",
    "approval_rules": "An array of tables that decide calls before anybody is asked, see below.",
    "sandbox_mode": '`"danger-full-access"` counts as full access; `"read-only"` and `"workspace-write"` do not.',
    "allowed_approval_policies": "What clients of the app server may choose for a thread: some of `on-request` and "
    "`never`. Without it, anything.",
    "allowed_sandbox_modes": "The same for `sandbox_mode`. What is not allowed is refused, and in the configuration "
    "itself ignored with a warning.",
    "store_answers": "Whether the content of accepted answers is kept in the store.",
    "orchestrator": "`mcp.enabled = false` closes gated servers to the model's resource tools.",
    "apps": "`[apps.CONNECTOR] enabled`, and `[apps._default]` for the others.",
    "tool_output_token_limit": "How much of one result a model is shown, in tokens of 4 bytes.",
    "model_auto_compact_token_limit": "At how many tokens of context a turn compacts its history first.",
}
TOP_LEVEL_DEFAULTS = {
    "model_provider": '`"openai"`',
    "approval_policy": '`"on-request"`',
    "store_answers": "`false`",
    "tool_output_token_limit": "`10000`",
}

SERVER = {
    "command": "The program of a stdio server, by name (looked up on its PATH) or path. No shell reads it.",
    "args": "Its arguments, each as it is.",
    "env": "Its variables. It sees these, those of `env_vars`, and of yours only HOME LOGNAME PATH SHELL USER LANG "
    "LC_ALL TERM TMPDIR TZ.",
    "env_vars": "Names of your variables that it is given, if they are set.",
    "cwd": "The folder in which it runs.",
    "url": "The address of an HTTP server. `command` or `url`, not both.",
    "bearer_token_env_var": "The variable that holds its bearer token; unset, the server cannot start.",
    "http_headers": "Headers of every request.",
    "env_http_headers": "Headers whose values are variables; one that is unset is left out with a warning.",
    "scopes": "Scopes to ask for when somebody authorises.",
    "oauth": "`client_id` and `callback_port` of an authorisation.",
    "oauth_resource": "The resource that tokens are asked for.",
    "legacy_sse": "`true`: HTTP+SSE of 2024-11-05 only; `false`: Streamable HTTP only; else it is found out.",
    "enabled": "Whether it is used.",
    "required": "Whether a Thread cannot be opened without it.",
    "startup_timeout_sec": "Seconds until it must be ready.",
    "startup_timeout_ms": "The same in milliseconds.",
    "tool_timeout_sec": "Seconds for one call; time in which a person is asked does not count.",
    "enabled_tools": "Only these tools, by their names at the server.",
    "disabled_tools": "All but these; it wins over `enabled_tools`.",
    "supports_parallel_tool_calls": "Whether its calls may run beside others, read-only or not.",
    "default_tools_approval_mode": "Who is asked about a call: `auto` by the tool's hints, `prompt` always, "
    "`writes` unless it only reads, `approve` never.",
    "tools": "`[mcp_servers.NAME.tools.TOOL] approval_mode` for single tools.",
    "grants_origins": "Whether its calls let an app's page read the resource that they name.",
    "gated": "Whether `orchestrator.mcp.enabled = false` closes it to the model's resource tools.",
    "protocol": "A protocol version to insist on.",
    "on_bad_tool": "`refuse`: a tool that cannot be used keeps all tools of the server out; `skip`: only itself.",
    "restart": "Whether it is started again after it ended.",
    "line_limit": "Bytes of one message, from 1024 to 1073741824.",
    "shared": "Whether Threads share one connection; by default those of the stateless era do.",
}

PROVIDER = {
    "name": "What it is called in messages.",
    "base_url": 'Its address, such as `"http://localhost:11434/v1"`.',
    "env_key": "The variable that holds the key; without it none is sent.",
    "experimental_bearer_token": "The key itself; write a reference.",
    "wire_api": "Which of OpenAI's two dialects it speaks: vLLM, Ollama and many others speak `chat`.",
    "http_headers": "Headers of every request.",
    "env_http_headers": "Headers whose values are variables.",
    "query_params": "Parameters that are added to every address.",
    "request_max_retries": "How often a request is repeated that was refused for now.",
    "stream_max_retries": "How often an answer is asked for again that broke off.",
    "stream_idle_timeout_ms": "Milliseconds of silence after which an answer counts as broken off.",
}

RULE = {
    "action": "What becomes of a call that the rule matches.",
    "server": "A shell pattern over the server's name.",
    "tool": "A shell pattern over the tool's name at its server.",
    "annotations": "Hints that must be exactly so: `read_only`, `destructive`, `idempotent`, `open_world`.",
    "arguments": "Tests by the path of an argument: a pattern, a value, or `{ like, within, one_of, present, minimum, "
    "maximum }`.",
    "reason": "A sentence for whoever wants to know.",
}

NOT_SHOWN = {"bearer_token", "name"}
"""Keys of a server's table that are there only to be refused or ignored."""
