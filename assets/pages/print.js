// Paper is white: a page is printed in the light theme, whatever its reader's screen shows.
(() => {
  const root = document.documentElement;
  let screen;
  addEventListener("beforeprint", () => {
    screen = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = screen;
  });
})();
