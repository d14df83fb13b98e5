"""Where a text given to brickwork stands in the Python source."""

import linecache
import textwrap

from brickwork.frontend.text_locations import calling_file, given_text


def found(monkeypatch, source, text):
    """Return what the place of a text in a source marks in its second line, or the file where it has none there."""
    file = "<literals>"
    monkeypatch.setitem(linecache.cache, file, (len(source), None, source.splitlines(keepends=True), file))
    given = given_text(text, "a::b", file)
    place = given.location(2, 4, 7)
    if given.file != file:
        return given.file
    return source.splitlines()[place.line - 1].encode()[place.column : place.end_column].decode()


TEXT = "first\n    abc\n"


def test_a_literal_is_found_where_it_stands(monkeypatch):
    assert found(monkeypatch, f'x = 1\nS = """{TEXT}"""\n', TEXT) == "abc"
    assert found(monkeypatch, f"x = 1\nS = r'''{TEXT}'''\n", TEXT) == "abc"


def test_a_literal_that_is_dedented_is_found(monkeypatch):
    inner = textwrap.indent(TEXT, "        ")
    source = f'def f():\n    return dedent("""\\\n{inner}""")\n'
    assert found(monkeypatch, f'S = """\n{inner}"""\n', "\n" + TEXT) == "t"
    assert found(monkeypatch, source, TEXT) == "abc"


def test_a_text_that_is_put_together_has_a_name_and_lines_of_its_own(monkeypatch):
    assert found(monkeypatch, 'S = f"""first\n    {1}abc\n"""\n', TEXT) == "<a::b>"
    assert linecache.getline("<a::b>", 2) == "    abc\n"


def test_the_first_line_of_a_literal_begins_behind_its_quotes(monkeypatch):
    source = 'S = "abc"\n'
    monkeypatch.setitem(linecache.cache, "<one>", (len(source), None, [source], "<one>"))
    place = given_text("abc", "a::b", "<one>").whole_line(1)
    assert (place.line, source[place.column : place.end_column]) == (1, "abc")


def test_the_file_that_calls_is_the_users():
    assert calling_file() == __file__
