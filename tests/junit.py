"""What a JUnit file has: names of its cases, and whether its totals are right."""

from xml.etree import ElementTree as ET


def shape(path):
    """Names of all cases, of those that fail and of those that are skipped; totals are checked on the way."""
    root = ET.parse(path).getroot()
    assert root.tag == "testsuites"
    for element in (root, *root.iter("testsuite")):
        cases = list(element.iter("testcase"))
        counted = [len(cases), *(sum(case.find(tag) is not None for case in cases) for tag in ("failure", "skipped"))]
        assert [int(element.get(name)) for name in ("tests", "failures", "skipped")] == counted
    return [
        {case.get("name") for case in root.iter("testcase") if tag is None or case.find(tag) is not None}
        for tag in (None, "failure", "skipped")
    ]
