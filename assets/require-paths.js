// The widgets' manager is loaded by require.js under its package name: it lies beside this page.
requirejs.config({
  paths: {
    "@jupyter-widgets/html-manager/dist":
      document.documentElement.dataset.content_root + "_static/vendor",
  },
});
