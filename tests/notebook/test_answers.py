"""Answers of an engine as values of cells: as tables while the extension is loaded, as text always."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from tests.viz.test_allowed import answer


def test_a_shell_shows_a_table_while_the_extension_is_loaded(shell: InteractiveShell) -> None:
    display: Any = shell.display_formatter
    shell.run_line_magic("load_ext", "nbsglang")
    data, _ = display.format(answer())
    assert "✓ A" in data["text/html"]
    assert data["text/plain"] == str(answer())
    shell.run_line_magic("unload_ext", "nbsglang")
    assert "text/html" not in display.format(answer())[0]
