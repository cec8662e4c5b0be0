// The settings of an explorer are in the page's address, which can be sent: #explorer-1?GPUs=2
(() => {
  "use strict";

  /** Of one explorer: `read()` gives the settings that the address has for it, if any. */
  globalThis.settingsInAddress = (root) => {
    const place = [...document.querySelectorAll(".explore")].indexOf(root) + 1;
    const name = `explorer-${place}`;
    const isPage = Boolean(root.closest("article")); // in a notebook the address is not ours
    return {
      read() {
        const [of, settings] = location.hash.slice(1).split("?");
        return isPage && of === name && settings ? new URLSearchParams(settings) : null;
      },
      write(settings) {
        if (!isPage) return;
        history.replaceState(history.state, "", `#${name}?${new URLSearchParams(settings)}`);
      },
    };
  };
})();
