// The page as a whole: who is signed in, which view is shown, and what an address means.

import { AnswerView } from "./answer.js";
import { Problem, call, getJson, session } from "./api.js";
import { Conversation, newSession } from "./conversation.js";
import { byId, counted, problemView } from "./dom.js";
import { DocumentsView } from "./documents.js";
import { hashFor, placeOf, searchFor } from "./place.js";
import { QuestionForm } from "./question.js";
import { Uploads } from "./uploads.js";
import { Viewer } from "./viewer.js";

const THEME = "ctx.theme";
const here = () => placeOf(new URL(location.href));

let isIn = false; // somebody is signed in, as far as is known
let offered = false; // the filters know what there is to choose from

const answer = new AnswerView(byId("answer"), kept);
const conversation = new Conversation(byId("conversation"), (address) => {
  go(address);
  scrollTo({ top: 0 });
});
const form = new QuestionForm((ask) => go(searchFor({ ...ask, session: here().ask.session }), { again: true }));
const documents = new DocumentsView((info) => {
  const { ask } = here();
  go(searchFor({ ...ask, q: "", doc: [info.doc_id] }));
  byId("filters").open = true;
  form.box.focus();
});
const uploads = new Uploads({
  onAdded: () => {
    lookAround().catch(() => {}); // who is gone, or nobody any more, is told by what asks next
    documents.refresh(here().view === "documents");
  },
  onShow: () => {
    if (here().view !== "documents") go(`${location.search ? `/${location.search}` : "/"}#documents`);
  },
});
const viewer = new Viewer({
  onMove: (page) => go(hashFor(here().view, page), { replace: true }),
  onSource: (number) => openSource(number, { replace: true }),
  onClose: () => {
    if (!history.state?.first)
      history.back(); // to where it was opened
    else go(`${location.pathname}${location.search}${hashFor(here().view, null)}`, { replace: true });
  },
});

/** To another address of this page. `again`: the question is asked even if it is the same. */
function go(url, { replace = false, again = false } = {}) {
  if (replace) history.replaceState(history.state, "", url);
  else if (new URL(url, location.href).href !== location.href) history.pushState(null, "", url);
  if (again) answer.asked = "";
  show();
}

/** An answer is there: its address names the turn of the conversation that it was kept as. */
function kept({ session }, place) {
  if (!session?.turn || here().key !== place.key) return;
  const address = searchFor({ ...place.ask, session: session.name, turn: session.turn });
  history.replaceState(history.state, "", `${address}${location.hash}`);
  answer.asked = here().key;
  conversation.show(session, address);
}

/** Ask something that does not lean on what was asked. */
function beginAnew() {
  go(searchFor({ ...here().ask, q: "", session: "" }));
  form.box.focus();
}

/** Everything as the address has it. */
function show() {
  const place = here();
  const isAsk = place.view === "ask";
  delete document.documentElement.dataset.begins;
  byId("login-view").hidden = isIn;
  byId("views").hidden = !isIn;
  byId("ask-view").hidden = !isIn || !isAsk;
  byId("documents-view").hidden = !isIn || isAsk;
  byId("to-ask").href = `/${location.search}`;
  byId("to-documents").href = `/${location.search}#documents`;
  byId(isAsk ? "to-ask" : "to-documents").setAttribute("aria-current", "page");
  byId(isAsk ? "to-documents" : "to-ask").removeAttribute("aria-current");
  byId("ask-view").classList.toggle("start", !place.key);
  document.title = isAsk && place.ask.q ? `${place.ask.q.slice(0, 120)} · ctx` : isAsk ? "ctx" : "Documents · ctx";
  form.fill(place.ask);
  if (!isIn) return;
  if (!isAsk) documents.show();
  if (!place.key) {
    answer.clear();
    conversation.clear();
  } else if (place.key !== answer.asked) {
    form.remember(place.ask.q);
    place.ask.session ||= newSession();
    answer.show(place).then(() => answer.jump(here().source));
  }
  if (place.page) viewer.open(place.page, isAsk ? place.ask.q : "");
  else viewer.close();
}

/** The page of a source, by its number. */
function openSource(number, how = {}) {
  const source = here().view === "ask" && answer.sources[number - 1];
  if (source) go(hashFor("ask", { id: source.doc_id, number: source.page }), how);
}

/** What there is to ask, for the start page and the filters. */
async function lookAround() {
  const status = await getJson("/api/status");
  byId("version").textContent = `ctx ${status.version}`;
  byId("to-documents").textContent = status.documents
    ? `Documents ${status.documents.toLocaleString("en")}`
    : "Documents";
  const documentsThere = counted(status.documents, "document");
  byId("scope").textContent = status.empty
    ? `The index is empty. Add documents ${status.ingest_allowed ? "first" : "with: ctx ingest FOLDER"}.`
    : `${documentsThere}, ${counted(status.pages, "page")}. Answers are quoted word for word, with their pages.`;
  form.offerModel(status.model);
  answer.model = status.model;
  uploads.allow(status.ingest_allowed);
  byId("ask-view").classList.toggle("empty", status.empty);
  offered = false;
  if (byId("filters").open || here().ask.doc.length) await offerChoices();
  return status;
}

/** Documents and tags for the filters, once somebody looks at these. */
async function offerChoices() {
  if (offered) return;
  offered = true;
  const [known, tagged] = await Promise.all([getJson("/api/documents?limit=1000"), getJson("/api/tags")]);
  form.offer(known.documents, tagged.tags);
}

async function begin() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  // Out of the address bar and the history at once: a token is worth a session to whoever reads it there.
  history.replaceState({ first: true }, "", token ? `${location.pathname}${location.search}` : location.href);
  if (token) {
    const problem = await signIn(token);
    if (problem) {
      await enter();
      if (!isIn) byId("login-problem").textContent = `${problem.title}. ${problem.hint}`;
      return;
    }
  }
  await enter();
}

/** Show the page to whoever is signed in, the form to everybody else. */
async function enter() {
  isIn = true;
  try {
    // The question does not wait for what stands around it.
    const looking = lookAround();
    show();
    const status = await looking;
    byId("sign-out").hidden = false;
    const canType = matchMedia("(hover: hover)").matches; // where a focus brings no keyboard onto the screen
    if (canType && here().view === "ask" && !here().key && document.activeElement === document.body) form.focus();
    if (status.empty && here().view === "ask" && !here().key && status.ingest_allowed)
      go("/#documents", { replace: true });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (error.status !== 401 && !here().key)
      byId("answer").replaceChildren(
        problemView(error, () => {
          byId("answer").replaceChildren();
          enter();
        }),
      );
  }
}

async function signIn(token) {
  try {
    await call("/api/login", { method: "POST", body: { token } });
    return null;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return error;
  }
}

session.addEventListener("over", () => {
  if (!isIn) return;
  isIn = false;
  byId("sign-out").hidden = true;
  viewer.close();
  answer.clear();
  conversation.clear();
  documents.refresh(false);
  show();
  byId("token").focus();
});

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  byId("login-problem").textContent = "";
  const problem = await signIn(byId("token").value.trim());
  byId("token").value = "";
  if (problem) {
    byId("login-problem").textContent = [problem.title, problem.hint].filter(Boolean).join(". ");
    byId("token").focus();
    return;
  }
  await enter();
  if (isIn) form.focus();
});

byId("sign-out").addEventListener("click", async () => {
  await call("/api/logout", { method: "POST" }).catch(() => {});
  session.dispatchEvent(new Event("over"));
});

byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // what stands behind the # is the view
  byId("main").focus();
});

byId("home").addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go("/");
  form.box.focus();
});

byId("to-ask").addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(`/${location.search}`);
});

const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const tellTheme = () => byId("theme").setAttribute("aria-pressed", String(isDark()));
tellTheme();
prefersDark.addEventListener("change", tellTheme);

byId("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  tellTheme();
  try {
    localStorage.setItem(THEME, document.documentElement.dataset.theme);
  } catch {
    // It holds until the page is loaded again.
  }
});

byId("filters").addEventListener("toggle", () =>
  offerChoices().catch(() => {
    offered = false;
  }),
);

byId("new-conversation").addEventListener("click", beginAnew);

byId("show-keys").addEventListener("click", () => byId("keys").showModal());

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, select, dialog[open]")) return;
  if (event.key === "/" && isIn) {
    event.preventDefault();
    if (here().view !== "ask") go(`/${location.search}`);
    form.focus();
  } else if (event.key === "n" && isIn) {
    event.preventDefault();
    beginAnew();
  } else if (event.key === "?") byId("keys").showModal();
  else openSource(Number(event.key));
});

addEventListener("popstate", () => {
  // A link of this page that was followed, or a step in the history: both end here.
  if (location.hash.includes("token=")) begin();
  else show();
  if (here().source) answer.jump(here().source);
});

begin();
