"""Words that a shell completes.

Owns: finding the names of servers.
Never: starts anything, warns, or fails: where nothing is known nothing is proposed.
"""


def names_of_servers(incomplete: str) -> list[str]:
    """The names of configured servers that begin so; those of a file given with --config are not known yet."""
    import os
    from pathlib import Path

    from interlock.configuration import home_folder
    from interlock.configuration.load import server_names
    from interlock.vocabulary.errors import InterlockError

    try:
        names = server_names(home=home_folder(os.environ), project=Path.cwd())
    except (InterlockError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]
