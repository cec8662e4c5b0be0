"""What the tests of pictures that move do with them, as a reader does."""


def choose_ranks(page, ranks):
    page.get_by_role("combobox", name="Ranks").select_option(str(ranks))


def press(page, name):
    page.get_by_role("button", name=name).click()


def clock(page):
    return page.get_by_role("slider")


def hold_clock(page):
    """From now on the page's time passes as the test says: a day later, which no test can reach
    before this does."""
    page.clock.install(time=0)
    page.clock.pause_at(86_400_000)


def words(page):
    """What the page says of the moment, in one line."""
    return " ".join(page.get_by_role("status").inner_text().split())


def text_without_scripts(browser, html):
    """What a page shows whose scripts do not run."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(html)
    text = page.inner_text("body")
    context.close()
    return text
