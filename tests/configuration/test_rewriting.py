"""Replacing a file: whole or not at all, whoever else writes it."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from interlock.configuration import rewriting
from interlock.configuration.rewriting import rewrite
from interlock.vocabulary.errors import InvalidRequest

PATIENCE = 60.0


def test_a_change_is_made_again_on_what_another_program_wrote_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("old\n")
    seen: list[str] = []

    def change(text: str) -> str:
        seen.append(text)
        if len(seen) == 1:
            file.write_text("theirs\n")
        return text + "ours\n"

    rewrite(file, change)
    assert seen == ["old\n", "theirs\n"]
    assert file.read_text() == "theirs\nours\n"


def test_a_program_that_never_stops_writing_is_named_and_keeps_its_text(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("0")

    def change(text: str) -> str:
        file.write_text(str(int(text) + 1))
        return "ours"

    with pytest.raises(InvalidRequest, match="another program keeps writing it; close that program and try again"):
        rewrite(file, change)
    assert file.read_text() == "5"
    assert list(tmp_path.iterdir()) == [file]


def test_two_editors_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from interlock.configuration.rewriting import rewrite
        for number in range(20):
            rewrite(Path(sys.argv[1]), lambda text: f"{text}{sys.argv[2]} {number}\\n")
    """)
    editors = [subprocess.Popen([sys.executable, "-c", program, str(file), name]) for name in ("a", "b", "c")]
    assert [editor.wait(PATIENCE) for editor in editors] == [0, 0, 0]
    assert sorted(file.read_text().splitlines()) == sorted(f"{name} {number}" for name in "abc" for number in range(20))


def test_an_editor_that_holds_the_folder_is_waited_for_only_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "LOCK_PATIENCE", 0.05)
    file = tmp_path / "config.toml"
    held, free = threading.Event(), threading.Event()

    def slow(text: str) -> str:
        held.set()
        free.wait(PATIENCE)
        return "theirs"

    other = threading.Thread(target=rewrite, args=(file, slow))
    other.start()
    held.wait(PATIENCE)
    try:
        with pytest.raises(InvalidRequest, match="another interlock is editing there"):
            rewrite(file, lambda text: "ours")
    finally:
        free.set()
        other.join(PATIENCE)
    assert file.read_text() == "theirs"


def test_a_link_and_the_permissions_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "config.toml"
    real.parent.mkdir()
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    rewrite(link, lambda text: "new")
    assert link.is_symlink()
    assert (real.read_text(), real.stat().st_mode & 0o777) == ("new", 0o640)


def test_a_failure_while_writing_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidRequest, match="no space left on device; check the permissions"):
        rewrite(file, lambda text: "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_no_utf8_is_not_edited(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xff")
    with pytest.raises(InvalidRequest, match="it is not UTF-8"):
        rewrite(file, lambda text: "new")
    assert file.read_bytes() == b"\xff"
