from canaryproof.reports.page import Section, page


def test_a_page_has_its_sections_in_order():
    plain = Section("First", ("a", "b"), (("1", "2"),), "Below.")
    drawn = Section("Second", ("c",), (), "End.", "drawn.svg", "what it shows")
    text = page("Title", "About.", [plain, drawn])
    assert text == (
        "# Title\n\nAbout.\n\n## First\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nBelow.\n\n"
        "## Second\n\n![what it shows](drawn.svg)\n\n| c |\n|---|\n\nEnd.\n"
    )
