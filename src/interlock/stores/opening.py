"""From a path or a URL to a store.

Owns: which words choose which store.
Never: imports a database's driver before it is chosen.
"""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import unquote

from interlock.vocabulary.errors import InvalidRequest
from interlock.vocabulary.ports import Store


def open_store(place: str | Path) -> AbstractAsyncContextManager[Store]:
    """The store at `place`: a path, `sqlite:///path` (four slashes for an absolute one), or `postgresql://…`.

    InvalidRequest for another scheme; StorageFailed, on entering, when the store cannot be used.
    """
    if isinstance(place, Path) or "://" not in place:
        return _sqlite(Path(place))
    match place.partition("://")[0].lower():
        case "sqlite":
            return _sqlite(_path_of(place))
        case "postgresql" | "postgres":
            return _postgres(place)
        case scheme:
            raise InvalidRequest(
                f"cannot open a store with the scheme '{scheme}'; use a path, sqlite:///PATH or postgresql://…",
                scheme=scheme,
            )


def _path_of(url: str) -> Path:
    rest = unquote(url.removeprefix("sqlite://"))
    if not rest.startswith("/") or rest in ("/", "/:memory:"):
        raise InvalidRequest(
            "cannot open a store in memory or without a file name; use sqlite:///PATH"
            " (four slashes begin an absolute path)"
        )
    return Path(rest.removeprefix("/"))


def _sqlite(path: Path) -> AbstractAsyncContextManager[Store]:
    from interlock.stores.sqlite import open_sqlite

    return open_sqlite(path.expanduser())


def _postgres(url: str) -> AbstractAsyncContextManager[Store]:
    try:
        from interlock.stores.postgres import open_postgres
    except ModuleNotFoundError as error:
        raise InvalidRequest(
            "cannot open a PostgreSQL store: the package asyncpg is not installed; "
            "run: pip install 'interlock[postgres]'"
        ) from error
    return open_postgres(url)
