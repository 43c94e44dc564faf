"""The report in a real browser: what no reading of its text can tell."""

import shutil

import pytest

from canaryproof.reports.formats import BROWSERS

sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: make test-browser")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"none of {', '.join(BROWSERS)} is installed")
SHOWN = ".claims > li:visible"


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def address(page, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(page, encoding="utf-8")
    return file.as_uri()


@pytest.fixture
def visit(browser, address):
    """Open the page; nothing may go wrong in it, and nothing may be fetched."""
    contexts, said = [], []

    def opened(place="", **options):
        context = browser.new_context(**options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("request", lambda request: said.append(request.url) if not request.url.startswith(address) else None)
        tab.goto(address + place)
        return tab

    yield opened
    assert not said
    for context in contexts:
        context.close()


def test_the_ledger_is_closed_and_comes_after_the_pictures(visit):
    tab = visit()
    assert tab.locator(SHOWN).count() == 0
    picture, ledger = (tab.locator(place).first.bounding_box()["y"] for place in (".picture", "#ledger"))
    assert picture < ledger


def test_the_filter_shows_what_is_chosen_and_counts_it(visit):
    tab = visit()
    tab.select_option("[name=verdict]", "refuted")
    assert tab.locator(SHOWN).count() == 3
    tab.select_option("[name=suite]", "theorems")
    assert tab.locator("output").inner_text() == "2 of 8 shown: 2 refuted"
    assert tab.locator("[data-document=final] > summary h3 .shown").inner_text() == "2"
    assert "suite=theorems" in tab.url
    tab.select_option("[name=document]", "v1")
    assert tab.locator(SHOWN).count() == 0
    assert tab.locator(".group:visible").count() == 0
    tab.get_by_role("button", name="Show all").click()
    sync_api.expect(tab.locator("output")).to_contain_text("8 of 8 shown")
    assert "?" not in tab.url


def test_a_search_finds_all_of_its_words(visit):
    tab = visit()
    tab.fill("[name=search]", "THEOREM  3.3")
    assert [one.get_attribute("id") for one in tab.locator(SHOWN + " > details").all()] == ["final.footnote"]
    assert "search=THEOREM" in tab.url


def test_an_address_brings_its_filter(visit):
    tab = visit("?verdict=refuted&search=tight")
    assert tab.locator("output").inner_text() == "1 of 8 shown: 1 refuted"
    assert tab.locator(SHOWN).count() == 1


@pytest.mark.parametrize("scripts", [True, False])
def test_a_count_on_the_first_screen_leads_to_its_claims(visit, scripts):
    tab = visit(java_script_enabled=scripts)
    tab.locator(".counts a").nth(2).click()
    sync_api.expect(tab.locator(SHOWN)).to_have_count(3)
    assert tab.locator(".claims:visible").evaluate_all("lists => lists.every(one => one.classList.contains('refuted'))")


def test_a_deep_link_opens_its_claim_and_keeps_the_filter(visit):
    tab = visit("?verdict=refuted#canife.cap")
    opened = tab.locator(".claims details[open]")
    assert [one.get_attribute("id") for one in opened.all()] == ["canife.cap"]
    sync_api.expect(opened).to_be_in_viewport()
    assert tab.locator("output").inner_text() == "3 of 8 shown: 3 refuted"
    tab.get_by_role("link", name="final.footnote").click()
    sync_api.expect(tab.locator("[id='final.footnote']")).to_have_attribute("open", "")
    sync_api.expect(tab.locator("[id='final.footnote'] .body")).to_be_in_viewport()
    assert "verdict=refuted" in tab.url
    assert not tab.locator("[id='canife.cap']").is_visible()


def test_a_deep_link_opens_its_claim_without_scripts(visit):
    tab = visit("#canife.cap", java_script_enabled=False)
    body = tab.locator("[id='canife.cap'] .body")
    assert body.is_visible()
    sync_api.expect(body).to_be_in_viewport()
    assert not tab.locator("[id='v1.rate'] .body").is_visible()


def test_the_navigation_stays_in_sight(visit):
    tab = visit("#methods")
    sync_api.expect(tab.locator(".toc")).to_be_in_viewport()


@pytest.mark.parametrize(("width", "cut"), [(390, True), (1280, False)])
def test_a_picture_that_is_cut_says_so(visit, width, cut):
    tab = visit(viewport={"width": width, "height": 900}, java_script_enabled=False)
    pan = tab.locator(".pan").first
    assert pan.evaluate("box => box.scrollWidth > box.clientWidth") == cut
    assert (tab.locator(".cut").first.bounding_box()["height"] > 5) == cut


def test_claims_fold_by_keyboard(visit):
    tab = visit()
    body = tab.locator("[id='v1.rate'] .body")
    assert not body.is_visible()
    for summary in ("[data-document=v1] > summary", "[id='v1.rate'] > summary"):
        tab.locator(summary).focus()
        tab.keyboard.press("Enter")
    assert body.is_visible()
    tab.keyboard.press("Enter")
    assert not body.is_visible()


def test_the_first_key_reaches_the_link_that_skips(visit):
    tab = visit()
    tab.keyboard.press("Tab")
    skip = tab.locator(".skip")
    sync_api.expect(skip).to_be_focused()
    sync_api.expect(skip).to_be_in_viewport()


@pytest.mark.parametrize("scripts", [True, False])
def test_on_paper_all_is_open_but_what_is_confirmed(visit, scripts):
    tab = visit(java_script_enabled=scripts)
    tab.emulate_media(media="print")
    for summary in tab.locator(".claims summary").all():
        assert summary.is_visible()
    compact = ".confirmed, .needs-data"
    for body in tab.locator(".claims .body").all():
        assert body.is_visible() != body.evaluate(f"body => Boolean(body.closest('{compact}'))")
    assert tab.locator("#methods dl").first.bounding_box()["height"] > 20
    assert not tab.locator(".toc").is_visible()
    assert not tab.locator("#filter").is_visible()


def test_without_scripts_there_is_no_filter(visit):
    tab = visit(java_script_enabled=False)
    assert not tab.locator("#filter").is_visible()
    tab.locator("[data-document=v1] > summary").click()
    tab.locator("[id='v1.rate'] > summary").click()
    assert tab.locator("[id='v1.rate'] .body").is_visible()


@pytest.mark.parametrize("width", [1440, 820, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_width_makes_the_page_scroll_sideways(visit, width, scheme):
    tab = visit(viewport={"width": width, "height": 900}, color_scheme=scheme)
    # With all of it open.
    tab.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) > 384) == (scheme == "light")


def test_text_of_claims_does_nothing(visit):
    tab = visit("#canife.cap")
    assert tab.evaluate("window.hit") is None
    assert tab.locator("img").count() == 0
    assert "<img src=x onerror" in tab.locator("[id='canife.cap']").inner_text()
