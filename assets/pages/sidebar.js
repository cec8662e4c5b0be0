// The side bar shows where one is, and no less than it can of what stands above. The theme puts it
// where it was on the page before, out of sight of the entry after a few pages, or scrolls an entry
// up that was in sight.
(() => {
  "use strict";

  function showCurrent() {
    const bar = document.querySelector(".bd-sidebar-primary");
    const current = [...document.querySelectorAll(".bd-docs-nav li.current.active")].pop();
    if (!bar || !current) return;
    bar.scrollTop = 0;
    const { bottom } = current.getBoundingClientRect();
    const room = bar.getBoundingClientRect().bottom - bottom;
    if (room < 0) bar.scrollTop = bar.clientHeight / 3 - room; // with what comes next below it
  }

  // after the theme, which does its part at this moment, too
  document.addEventListener("DOMContentLoaded", () => setTimeout(showCurrent));
  // and once the logo is there, which moves all that is below it
  window.addEventListener("load", showCurrent);
})();
