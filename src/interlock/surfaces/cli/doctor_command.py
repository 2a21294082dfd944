"""`interlock doctor`: what is wrong, and how to mend it.

Owns: the command's options and help.
Never: examines anything; the modules imported inside do.
"""

from functools import partial

from interlock.surfaces.cli.lazy_group import new_app
from interlock.surfaces.cli.options import ConfigOption, JsonOption, ServerOption

app = new_app()


@app.command()
def doctor(server: ServerOption = None, config: ConfigOption = None, json: JsonOption = False) -> int:
    """Start every server, or one, and say what is wrong and how to mend it; exit status 1 when something would fail."""
    from interlock.surfaces.cli import running
    from interlock.surfaces.cli.doctor import examination

    return running.run(partial(examination.show, server, config, json))
