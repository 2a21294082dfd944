"""The method reference of docs/app-server.md.

Owns: how the schema of the table reads as Markdown, and where it stands in the page.
Never: says anything of a method that its row in the table does not say.

    python -m interlock.surfaces.rpc.reference docs/app-server.md      writes it into the page
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from interlock.surfaces.rpc.schema import document

BEGIN: Final = "<!-- reference: made by interlock.surfaces.rpc.reference -->"
END: Final = "<!-- end of the reference -->"


def rewritten(page: str) -> str:
    """The page with its reference as it is now. ValueError: it has no place for one."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no place for the reference; write {BEGIN} and {END} into it")
    return f"{head}{BEGIN}\n\n{reference()}\n{END}{tail}"


def reference() -> str:
    schema = document()
    return "\n".join(
        (
            *_section("Methods", schema["methods"]),
            *_section("Notifications", schema["notifications"]),
            *_section("Requests to the client", schema["serverRequests"]),
        )
    )


def _section(title: str, entries: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {title}\n"
    for name, entry in entries.items():
        yield f"**`{name}`** {entry['description']}\n"
        members = list(_members(entry["params"]))
        if members:
            yield from members
            yield ""
        if "result" in entry:
            yield f"Result: {_result(entry['result'])}\n"


def _members(schema: Mapping[str, Any]) -> Iterator[str]:
    """A line for each member; of a union it says which alternatives have it, by the member that tells them apart."""
    definitions = schema.get("$defs", {})
    variants = list(_variants(schema, definitions))
    for name in dict.fromkeys(name for variant in variants for name in variant.get("properties", {})):
        having = [variant for variant in variants if name in variant.get("properties", {})]
        types = dict.fromkeys(type_text(variant["properties"][name], definitions) for variant in having)
        optional = "" if all(name in variant.get("required", ()) for variant in having) else ", optional"
        yield f"- `{name}`: {' or '.join(types)}{optional}" + ("" if having == variants else _only_in(having))


def _only_in(variants: Sequence[Mapping[str, Any]]) -> str:
    """Such as: , with `mode` "url"."""
    told = (
        f"`{name}` {type_text(member, {})}"
        for variant in variants
        for name, member in variant["properties"].items()
        if "const" in member
    )
    return f", with {' or '.join(dict.fromkeys(told))}"


def _variants(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The one object, or the alternatives of a union."""
    if "$ref" in schema:
        yield from _variants(_resolved(schema, definitions), definitions)
    elif "anyOf" in schema:
        for alternative in schema["anyOf"]:
            yield from _variants(alternative, definitions)
    else:
        yield schema


def _result(schema: Mapping[str, Any]) -> str:
    definitions = schema.get("$defs", {})
    names = [f"`{name}`" for variant in _variants(schema, definitions) for name in variant.get("properties", {})]
    return ", ".join(dict.fromkeys(names)) + "." if names else "`{}`."


def type_text(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """A type in a few words."""
    if "$ref" in schema:
        return _named(schema, definitions)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(type_text(one, definitions) for one in schema[union]))
    if "enum" in schema:
        return " or ".join(f'"{value}"' for value in schema["enum"])
    if "const" in schema:
        return f'"{schema["const"]}"'
    match schema.get("type"):
        case "array":
            return f"list of {type_text(schema.get('items', {}), definitions)}"
        case str(plain):
            return plain
        case _:
            return "anything"


def _named(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    target = _resolved(schema, definitions)
    return str(target.get("title", "object")) if target.get("type") == "object" else type_text(target, definitions)


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = definitions[str(schema["$ref"]).rpartition("/")[2]]
    return found


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")
