import sys
from textwrap import dedent

import pytest

from canaryproof.proofs_check.code_digest import code_digest, reachable

FIRST = """
    from pinned import second
    from pinned.second import Shape as Form, helper

    RATE = 0.5
    TABLE = {}
    TABLE["size"] = 1

    def root(form: Form, size=RATE):
        '''Words.'''
        return helper(size) + second.scaled(form.area())

    def looped(values):
        def inner(RATE):
            return RATE
        helper = [inner(unused) for unused in values]
        return helper

    def many():
        return [module.scaled(1) for module in (second,)]

    def unused():
        return TABLE

    def counted():
        global COUNT
        COUNT = 1
        return COUNT

    COUNT = 0
"""
SECOND = """
    from pinned.third import helper

    FACTOR = 2

    class Shape:
        def area(self):
            return FACTOR

    def scaled(value):
        return value

    def other():
        return scaled(1)
"""
THIRD = """
    def helper(size):
        return size
"""
MODULES = {f"pinned.{name}" for name in ("first", "second", "third")}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write modules of a package, in place of those that were there, and return their folder."""
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "pinned"
    folder.mkdir()

    def write(first=FIRST, second=SECOND, third=THIRD):
        for name in [name for name in sys.modules if name.partition(".")[0] == "pinned"]:
            monkeypatch.delitem(sys.modules, name)
        for name, text in {"__init__": "", "first": first, "second": second, "third": third}.items():
            (folder / f"{name}.py").write_text(dedent(text))

    write()
    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "pinned"]:
        monkeypatch.delitem(sys.modules, name)


def names(root):
    return {name for _, name in reachable([("pinned.first", root)], MODULES)}


def digest(root):
    return code_digest([("pinned.first", root)], MODULES)


@pytest.mark.usefixtures("package")
def test_a_function_reaches_what_it_names_in_all_modules():
    # The class as a whole by the annotation, and what an import hands on from another module.
    assert names("root") == {"root", "RATE", "Shape", "FACTOR", "helper", "scaled"}
    assert names("unused") == {"unused", "TABLE"}
    assert names("counted") == {"counted", "COUNT"}


@pytest.mark.usefixtures("package")
def test_local_names_reach_nothing():
    assert names("looped") == {"looped"}


@pytest.mark.usefixtures("package")
def test_a_module_that_is_handed_on_is_reached_as_a_whole():
    assert names("many") == {"many", "Shape", "FACTOR", "scaled", "other"}


def test_a_lambda_of_a_table_is_found_by_its_line(package):
    head = "ROWS = (\n    ('a', lambda x: RATE * x),\n    ('b', lambda x: helper(x)),\n)\n"
    package(first=f"from pinned.third import helper\n{head}RATE = 0.5\n")
    assert names("<lambda> 3") == {"<lambda> 3", "RATE"}
    assert names("<lambda> 4") == {"<lambda> 4", "helper"}
    whole = digest("<lambda> 3")
    package(first=f"from pinned.third import helper\n{head.replace('helper(x)', '-helper(x)')}RATE = 0.5\n")
    assert digest("<lambda> 3") == whole


@pytest.mark.usefixtures("package")
def test_other_modules_are_not_followed():
    assert {name for _, name in reachable([("pinned.first", "root")], {"pinned.first"})} == {"root", "RATE"}


@pytest.mark.usefixtures("package")
def test_a_root_that_is_not_there_is_an_error():
    with pytest.raises(KeyError, match="nothing"):
        digest("nothing")


@pytest.mark.parametrize(
    ("part", "before", "after"),
    [
        ("first", "'''Words.'''", "'''Other words.'''  # And more."),
        ("first", "    def unused", "    def another():\n        return RATE\n\n    def unused"),
        ("second", "return scaled(1)", "return scaled(2)"),
        ("first", "from pinned import second\n", "from pinned import second\n    import math\n"),
    ],
)
def test_what_a_function_does_not_reach_leaves_its_digest(part, before, after, package):
    whole = digest("root")
    package(**{part: {"first": FIRST, "second": SECOND}[part].replace(before, after)})
    assert digest("root") == whole


@pytest.mark.parametrize(
    ("root", "before", "after"),
    [("root", "RATE = 0.5", "RATE = 0.25"), ("root", "form.area()", "-form.area()"), ("unused", '"size"', '"length"')],
)
def test_what_a_function_reaches_changes_its_digest(root, before, after, package):
    whole = digest(root)
    package(first=FIRST.replace(before, after))
    assert digest(root) != whole


def test_moving_a_function_leaves_the_digest(package):
    whole = digest("root")
    package(second=SECOND.replace("from pinned.third import helper", "def helper(size):\n        return size"))
    assert digest("root") == whole
