// Runs before the page is drawn, so that it never shows in the wrong light first.
(() => {
  try {
    const chosen = localStorage.getItem("ctx.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing shows what the system prefers.
  }
})();
