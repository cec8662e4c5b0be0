// Whether the page is dark: its ink tells, whatever page it is. The style sheet follows data-dark.
"use strict";

class LabTheme {
  static ATTRIBUTES = { attributeFilter: ["data-theme", "data-jp-theme-light", "class"] };

  /** `changed()` hears of each change, also of the first, when the element is in its page. */
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    this.pages = new MutationObserver(() => this.#look());
    for (const element of [document.documentElement, document.body]) {
      this.pages.observe(element, LabTheme.ATTRIBUTES);
    }
    this.size = new ResizeObserver(() => this.#look());
    this.size.observe(root);
  }

  #look() {
    if (!this.root.isConnected) return;
    const [red, green, blue] = getComputedStyle(this.root).color.match(/\d+/g).map(Number);
    const dark = String(0.3 * red + 0.6 * green + 0.1 * blue > 128);
    if (this.root.dataset.dark === dark) return;
    this.root.dataset.dark = dark;
    this.changed();
  }

  end() {
    this.pages.disconnect();
    this.size.disconnect();
  }
}
