// Runs before the page is drawn, so that it never shows in the wrong light, or the wrong view, first.
(() => {
  const root = document.documentElement;
  const asks = new URLSearchParams(location.search).get("q")?.trim();
  root.dataset.begins = /^#documents\b/.test(location.hash) ? "documents" : asks ? "answer" : "start";
  try {
    const chosen = localStorage.getItem("ctx.theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing shows what the system prefers.
  }
})();
