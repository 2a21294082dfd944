# A server is added, examined, looked at and asked, and taken out again.
set -eu

interlock mcp add time -- python -m mcp_server_time
interlock doctor time
interlock mcp list
interlock mcp tools time
interlock mcp call time get_current_time '{"timezone": "Europe/Rome"}'

interlock mcp get time
interlock mcp disable time
interlock mcp enable time
interlock mcp remove time
