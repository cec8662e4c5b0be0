"""What a reader does in JupyterLab and with the lab, as steps of a test."""

from pathlib import Path

from servers import SECONDS

READY = """async milliseconds => {
    const panel = () => window.jupyterapp.shell.currentWidget;
    const kernel = () => panel().sessionContext.session?.kernel;
    const idle = () => kernel()?.connectionStatus === 'connected' && kernel().status === 'idle';
    const ready = async () => {
        await window.jupyterapp.restored;
        await panel().context.ready;
        await panel().sessionContext.ready;
        await kernel().info;
        while (!idle()) await new Promise(resolve => setTimeout(resolve, 20));
    };
    const late = new Promise((_, reject) => setTimeout(
        () => reject(Error(`the kernel takes no code, it is ${kernel()?.status}`)), milliseconds));
    await Promise.race([ready(), late]);
}"""
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"


def wait_for_kernel(page):
    """Wait until the kernel of the notebook in front takes code."""
    page.evaluate(READY, SECONDS * 1000)


def open_notebook(page, server, at="lab/tree", name="lab.ipynb"):
    """Open the notebook in JupyterLab and wait until its kernel takes code."""
    page.goto(f"{server.url}/{at}/{name}?token={server.token}")
    page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context !== undefined")
    wait_for_kernel(page)


def wait_for_notebook(page, path):
    """Wait until this file is open as a notebook, which is what has cells, with its kernel."""
    page.wait_for_function(
        """path => {
            const panel = window.jupyterapp?.shell.currentWidget;
            return panel?.context?.path === path && panel.content?.widgets !== undefined;
        }""",
        arg=path,
    )
    wait_for_kernel(page)


def run_all(page):
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")


def edit_cell(page, index, before, after):
    """Change a cell's text and run it with the keyboard, as a reader does."""
    page.evaluate(
        """([index, before, after]) => {
            const notebook = window.jupyterapp.shell.currentWidget.content;
            const source = notebook.widgets[index].model.sharedModel;
            source.setSource(source.getSource().replace(before, after));
            notebook.activeCellIndex = index;
        }""",
        [index, before, after],
    )
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-cell')")
    wait_for_kernel(page)


def start_endless_cell(page):
    """Keep the kernel busy until it is interrupted."""
    page.evaluate(f"{KERNEL}.requestExecute({{code: 'threading.Event().wait()'}}); undefined")
    page.wait_for_function(f"{KERNEL}.status === 'busy'")


def interrupt(page):
    page.evaluate(f"{KERNEL}.interrupt()")
    wait_for_kernel(page)


class Lab:
    """The lab on a page, by the classes of its parts."""

    def __init__(self, page):
        self.page = page
        self.run, self.stop, self.reset = (
            page.locator(f".lab-{b}") for b in ("run", "stop", "reset")
        )
        self.devices = page.locator(".lab-num-gpus input")
        self.batch_size = page.locator(".lab-batch-size input[type=number]")
        self.batch_slider = page.locator(".lab-batch-size input[type=range]")
        self.lr = page.locator(".lab-lr input[type=number]")
        self.scale = page.locator(".lab-scale-lr input")
        self.epochs = page.locator(".lab-num-epochs input")
        self.rows = page.locator(".lab-table tbody tr")

    def wait_until_ready(self):
        """The lab is there and knows its devices."""
        self.expect(".lab-note", "This machine")

    def wait_until_idle(self):
        self.page.wait_for_function("!document.querySelector('.lab-run').disabled")

    def names(self):
        """The accessible name of every control that is shown."""
        return self.page.evaluate(
            """[...document.querySelectorAll('.lab-root :is(input, button, summary)')]
                .filter(e => e.checkVisibility())
                .map(e => e.ariaLabel || e.labels?.[0]?.textContent.trim() || e.textContent.trim())
            """
        )

    def expect(self, selector, words, seconds=SECONDS):
        self.page.locator(selector, has_text=words).wait_for(timeout=seconds * 1000)

    def choose(self, locator, value):
        """Type a value into a field."""
        locator.fill(str(value))
        locator.press("Enter")

    def pick(self, name, text):
        """Choose one of several, as 'train', 'devices', 'y-axis' or 'x-axis'."""
        self.page.locator(f".lab-{name}").get_by_label(text, exact=True).check()

    def wait_for_points(self, label, at_least=1):
        """Show the curve ``label``; wait until that of the last run has come so many epochs far."""
        self.pick("y-axis", label)
        self.page.wait_for_function(
            """([label, least]) => {
                const said = document.querySelector('.lab-curves .lab-plot').ariaLabel ?? '';
                return said.startsWith(label) && Number(said.split(' at ').at(-1)) >= least;
            }""",
            arg=[label, at_least],
        )

    def download(self, name):
        """The text of the file that a button beneath the table saves."""
        with self.page.expect_download() as download:
            self.page.locator(f"[data-file='{name}']").click()
        assert download.value.suggested_filename == name
        return Path(download.value.path()).read_text()

    def cells(self, row):
        return self.rows.nth(row).locator("td").all_text_contents()
